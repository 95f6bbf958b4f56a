package codec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// watchful is a context that counts how often it is looked at, and ends with one of these looks.
type watchful struct {
	context.Context
	looks, last int
}

func (w *watchful) Err() error {
	if w.looks++; w.last > 0 && w.looks >= w.last {
		return context.Canceled
	}
	return nil
}

type large struct {
	Metadata metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Strings  []string          `json:"strings" protobuf:"bytes,2,rep,name=strings"`
	Numbers  []int64           `json:"numbers" protobuf:"varint,3,rep,name=numbers"`
	Labels   map[string]string `json:"labels" protobuf:"bytes,4,rep,name=labels"`
	Counts   map[string]int32  `json:"counts" protobuf:"bytes,5,rep,name=counts"`
	Structs  []small1          `json:"structs" protobuf:"bytes,6,rep,name=structs"`
}

type small1 struct {
	A string `json:"a" protobuf:"bytes,1,opt,name=a"`
}

type largeJSON struct {
	large `json:",inline"`
	Array [1 << 16]int8 `json:"array"`
	Any   any           `json:"any"`
	// Other members are skipped.
}

// decodings decode an object of JSON in each of the ways there are.
func decodings[T any](c *codec.Codec[T], body string) map[string]func(context.Context) error {
	o := api.Options[T]{DropManagedFields: true}
	return map[string]func(context.Context) error{
		"object": func(ctx context.Context) error {
			return must.Err(c.DecodeObject(ctx, strings.NewReader(body), asJSON, api.Resource{}))
		},
		"list": func(ctx context.Context) error {
			return must.Err(c.DecodeList(ctx, strings.NewReader(`{"kind":"PodList","items":[`+body+`]}`), asJSON, api.Resource{}, o, discard))
		},
		"event": func(ctx context.Context) error {
			r, err := c.NewEventReader(ctx, bytes.NewReader(jsonFrame("ADDED", []byte(body))), asJSON, api.Resource{}, o)
			if err == nil {
				_, err = r.Next()
			}
			return err
		},
	}
}

// requireBreaks checks that a context which ends in the middle of a decoding ends it, wherever that is: it is looked at
// at least so often, and once it has ended no more than once again.
func requireBreaks(t *testing.T, least int, decode func(context.Context) error) {
	t.Helper()
	require.Positive(t, least, "the object is large enough")
	all := &watchful{Context: context.Background()}
	require.NoError(t, decode(all))
	require.GreaterOrEqual(t, all.looks, least)
	for last := 1; last <= all.looks; last += 1 + all.looks/6 {
		ends := &watchful{Context: context.Background(), last: last}
		require.Equal(t, context.Canceled, decode(ends), "look %d of %d", last, all.looks)
		require.LessOrEqual(t, ends.looks, last+1)
	}
}

func TestAContextEndsALargeObjectOfJSON(t *testing.T) {
	const n = 10_000
	repeat := func(open, value, end string) string { return open + strings.Repeat(value+",", n-1) + value + end }
	named := func(spec string) string { return `{"metadata":{"name":"x"},` + spec + `}` }
	structs, generic := codec.New[*largeJSON](codec.Options{}), unstructuredCodec
	for name, spec := range map[string]string{
		"strings": `"strings":` + repeat("[", `"a"`, "]"),
		"numbers": `"numbers":` + repeat("[", `1`, "]"),
		"labels":  `"labels":` + repeat("{", `"a":"b"`, "}"),
		"counts":  `"counts":` + repeat("{", `"a":1`, "}"),
		"structs": `"structs":` + repeat("[", `{"a":"b"}`, "]"),
		"members": repeat("", `"numbers":null`, ""),
		"array":   `"array":` + repeat("[", `1`, "]"),
		"any":     `"any":` + repeat("[", `{"a":[]}`, "]"),
		"skipped": `"other":` + repeat("[", `1`, "]"),
	} {
		for way, decode := range decodings(structs, named(spec)) {
			t.Run(name+"/"+way, func(t *testing.T) {
				twice := 2 // the scanner looks, and then the decoder
				if name == "skipped" {
					twice = 1
				}
				requireBreaks(t, twice*n/(2*codec.BetweenBreaks), decode)
			})
		}
		for way, decode := range decodings(generic, named(spec)) {
			t.Run("unstructured/"+name+"/"+way, func(t *testing.T) { requireBreaks(t, n/codec.BetweenBreaks, decode) })
		}
	}
}

func TestAContextEndsALargeMessage(t *testing.T) {
	const n = 100_000
	field := func(number byte, content string) string {
		return string(append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content))), content...))
	}
	entry := field(1, "a") + field(2, "b")
	c := codec.New[*large](codec.Options{})
	require.True(t, c.Protobuf())
	for name, message := range map[string]string{
		"strings": strings.Repeat(field(2, "a"), n),
		"numbers": strings.Repeat("\x18\x01", 2*n),
		"packed":  field(3, strings.Repeat("\x01", 4*n)),
		"labels":  strings.Repeat(field(4, entry), n),
		"counts":  strings.Repeat(field(5, field(1, "a")+"\x10\x01"), n),
		"entry":   field(5, strings.Repeat("\x10\x01", 2*n)),
		"structs": strings.Repeat(field(6, field(1, "a")), n),
		"unknown": strings.Repeat(field(9, "a"), n),
	} {
		body := sealedBytes("v1", "Pod", []byte(field(1, field(1, "x"))+message))
		t.Run(name, func(t *testing.T) {
			requireBreaks(t, len(body)/(2*codec.BytesBetweenBreaks), func(ctx context.Context) error {
				return must.Err(c.DecodeObject(ctx, bytes.NewReader(body), asProtobuf, pods))
			})
		})
	}
}

// A context is no error of an object: the object is not reported, and a list does not go on.
func TestAnEndedContextIsNoUndecodableObject(t *testing.T) {
	item := `{"metadata":{"name":"x"},"any":[` + strings.Repeat("1,", 200_000) + `1]}`
	o := unstructuredOptions{OnUndecodable: func(e *api.UndecodableError) error {
		t.Error("reported:", e)
		return nil
	}}
	ctx := &watchful{Context: context.Background(), last: 70}
	_, err := unstructuredCodec.DecodeList(ctx, strings.NewReader(`{"items":[`+item+`,`+item+`]}`), asJSON, api.Resource{}, o,
		func(*unstructured.Unstructured) error { return nil })
	require.Equal(t, context.Canceled, err)
}

// What is of an ordinary size is decoded without a look, which costs a lock in most contexts.
func TestOrdinaryObjectsAreDecodedWithoutALook(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		ctx := &watchful{Context: context.Background()}
		must.Get(podCodec.DecodeList(ctx, bytes.NewReader(podList(100, media)), media, pods, podOptions{}, discard))(t)
		require.Zero(t, ctx.looks)
	}
}

// A quantity of 16 MiB would take minutes to parse, in one piece.
func TestAQuantityIsOfAnOrdinaryLength(t *testing.T) {
	digits := strings.Repeat("7", 4<<20)
	for _, value := range []string{digits, `"` + digits + `"`, `"\u0031` + digits + `"`} {
		body := `{"metadata":{"name":"x"},"spec":{"containers":[{"resources":{"limits":{"cpu":` + value + `}}}]}}`
		_, err := podCodec.DecodeObject(context.Background(), strings.NewReader(body), asJSON, pods)
		require.EqualError(t, err, "decode pods x: spec.containers[0].resources.limits.*: "+map[bool]string{
			true: "a string", false: "a number",
		}[value[0] == '"']+" does not fit resource.Quantity")
	}
}
