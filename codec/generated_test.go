package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/codec"
)

// leaves are the types of a generated struct's fields.
var leaves = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[upper](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
	reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](),
	reflect.TypeFor[float64](), reflect.TypeFor[[]byte](), reflect.TypeFor[any](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
	reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension](),
	reflect.TypeFor[netip.Addr](), reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[error](),
}

var keys = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[upper](), reflect.TypeFor[int16](), reflect.TypeFor[uint32](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[bool](),
}

// generatedType makes a random type.
func generatedType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 || r.IntN(3) == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(6) {
	case 0:
		return reflect.PointerTo(generatedType(r, depth-1))
	case 1:
		return reflect.SliceOf(generatedType(r, depth-1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), generatedType(r, depth-1))
	case 3:
		return reflect.MapOf(keys[r.IntN(len(keys))], generatedType(r, depth-1))
	default:
		return generatedStruct(r, depth-1)
	}
}

func generatedStruct(r *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range 1 + r.IntN(6) {
		tag := []string{"%s", "%s,omitempty", "%s,string", ",string", "", "-", "-,", "sa'me", "a b%s", "%s\\\""}[r.IntN(10)]
		if tag != "" {
			tag = fmt.Sprintf(`json:%q`, fmt.Sprintf(tag+"%.0s", string(rune('a'+i)), ""))
		}
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: generatedType(r, depth), Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(fields)
}

// generatedDocument makes random JSON with the member names of generated structs.
func generatedDocument(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(4) == 0 {
		return []any{
			nil, true, "", "x", "12", "-3", "true", "null", "\"q\"", "007", "1e2", "50%", "100m", "MTIz", "1h", "10.0.0.1", "2024-01-02T03:04:05Z",
			"2024-01-02T03:04:05.123456Z", 0, 7, -1, 300, 1.5, 1e300, json.Number("99999999999999999999"), "\u00e9\u2028",
		}[r.IntN(26)]
	}
	if r.IntN(4) == 0 {
		var a []any
		for range r.IntN(4) {
			a = append(a, generatedDocument(r, depth-1))
		}
		return a
	}
	m := map[string]any{}
	for range r.IntN(7) {
		m[[]string{"a", "b", "c", "d", "e", "A", "B", "C", "D", "-", "1", "10.0.0.1", "name", "labels", "sa'me", "a bc"}[r.IntN(16)]] = generatedDocument(r, depth-1)
	}
	return m
}

// compareGenerated compares one random struct with sigs.k8s.io/json, for values that fit it and for values that do not.
func compareGenerated(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	typ := generatedStruct(r, 3)
	decode := codec.DecodeInto(typ)
	compare := func(b []byte) {
		want := reflect.New(typ).Interface()
		wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts(b, want)
		got, err := decode(b)
		require.Equal(t, wantErr == nil, err == nil, "seed %d, %s\n%s\nsigs.k8s.io/json says %v, leat %v", seed, typ, b, wantErr, err)
		if err == nil {
			require.True(t, reflect.DeepEqual(want, got), "seed %d, %s\n%s\nwant %+v\ngot  %+v", seed, typ, b, want, got)
		}
	}
	obj := reflect.New(typ)
	newFiller(seed, 0.2).fill(obj.Elem(), 0)
	if b, err := json.Marshal(obj.Interface()); err == nil {
		compare(b)
		var document any
		require.NoError(t, json.Unmarshal(b, &document))
		compare(repeatedly(r, nil, document))
		compare(mustJSON(mutate(r, document)))
	}
	for range 3 {
		document := map[string]any{}
		for _, name := range []string{"a", "b", "c", "A", "B"} {
			document[name] = generatedDocument(r, 3)
		}
		compare(mustJSON(document))
		compare(repeatedly(r, nil, document))
	}
}

// Structs of every shape are decoded as by sigs.k8s.io/json.
func TestGeneratedStructsLikeReference(t *testing.T) {
	for seed := range uint64(300) {
		compareGenerated(t, seed)
	}
}

func FuzzGeneratedStructs(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(compareGenerated)
}

type (
	stamped  struct{ metav1.Time }
	hiddenAs struct {
		embedded `json:"outer"`
	}
	hiddenPointer struct {
		*embedded `json:"outer"`
	}
	// If two embedded types have the method, neither is promoted. A method behind an unexported name cannot be called.
	readsX     struct{ X, Text string }
	readsY     struct{ Y, Text string }
	twoReaders struct {
		readsX `json:"x"`
		readsY `json:"y"`
	}
	twoLevels struct {
		hiddenAs
		*hidden
		Stamped   stamped                           `json:"stamped"`
		Unnamed   struct{ metav1.Time }             `json:"unnamed"`
		UnnamedP  *struct{ metav1.Time }            `json:"unnamedP"`
		TextP     *struct{ netip.Addr }             `json:"textP"`
		Text      struct{ netip.Addr }              `json:"text"`
		Func      func()                            `json:"func"`
		Err       error                             `json:"err"`
		Self      *twoLevels                        `json:"self"`
		Selves    []twoLevels                       `json:"selves"`
		ByName    map[string]twoLevels              `json:"byName"`
		Times     map[metav1.Time]int               `json:"times"`
		ByAddr    map[netip.Addr]*resource.Quantity `json:"byAddr"`
		Durations []*metav1.Duration                `json:"durations"`
		Quantity  **resource.Quantity               `json:"quantity"`
		Micro     *metav1.MicroTime                 `json:"micro"`
		Port      *intstr.IntOrString               `json:"port"`
	}
)

func (r *readsX) UnmarshalJSON(b []byte) error {
	r.Text = string(b)
	return nil
}

func (r *readsY) UnmarshalJSON(b []byte) error {
	r.Text = string(b)
	return nil
}

// Kubernetes' own types are decoded as by their UnmarshalJSON, wherever they are and however they are written.
func TestKnownTypesLikeReference(t *testing.T) {
	values := []string{
		`null`, `""`, `{}`, `[]`, `true`, `"x"`, `"2024-01-02T03:04:05Z"`, `"2024-01-02T03:04:05+02:00"`, `"2024-01-02T03:04:05.5-07:00"`, `"2024-01-02t03:04:05z"`,
		`"2024-1-2T3:4:5Z"`, `"2024-01-02T3:04:05Z"`, `"2024-01-02T03:04:05,5Z"`, `"2024-01-02T24:00:00Z"`, `"2024-02-30T03:04:05Z"`, `"2024-01-02T03:04:05+25:00"`,
		`"2024-01-02T03:04:05.123456Z"`, `"2024-01-02T03:04:05.123456+01:00"`, `"2024-01-02T03:04:05.12345Z"`, `"2024-01-02T03:04:05.1234567Z"`,
		`"2024-01-02T03:04:05,123456Z"`, `"2024-01-02 03:04:05.123456Z"`, `"2024-01-02T03:04:05\u005a"`, `"0001-01-01T00:00:00Z"`,
		`"1"`, `" 1 "`, `"1\u0030"`, `"1e3"`, `1e3`, `1.5`, `"-5m"`, `"1Gi"`, `"much"`, `"100000000000000000000"`, `0`, `7`, `-7`, `007`, `2147483647`, `2147483648`,
		`99999999999`, `"50%"`, "\"\xff\"", `"1h"`, `"10.0.0.1"`, `{"a":1}`, `{"a":"x"}`, `{"outer":{"a":"x"}}`, `{"c":"x"}`, `[{"a":"x"},{"b":2}]`, `["1h",null]`,
		`{"2024-01-02T03:04:05Z":1}`, `{"10.0.0.1":"1"}`, `{"10.0.0.1":"much"}`, `{"x":{"outer":{"b":1}}}`, `{"name":null}`,
	}
	typ := reflect.TypeFor[twoLevels]()
	names := []string{"outer", "c"}
	for i := range typ.NumField() {
		if name := typ.Field(i).Tag.Get("json"); name != "" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		for _, value := range values {
			sameAsReference(t, []byte(`{"`+name+`":`+value+`}`), typ)
		}
	}
	sameAsReference(t, []byte(`{"x":{"X":"a","Text":"b"},"y":{"Y":"c"}}`), reflect.TypeFor[twoReaders]())
	sameAsReference(t, []byte(`{"x":null,"y":7}`), reflect.TypeFor[twoReaders]())
	_, err := codec.DecodeInto(reflect.TypeFor[hiddenPointer]())([]byte(`{"outer":{"a":"x"}}`))
	require.ErrorContains(t, err, "outer: an embedded pointer to codec_test.embedded cannot be set", "where sigs.k8s.io/json panics")
	_, err = codec.DecodeInto(typ)([]byte(`{"self":{"selves":[{},{"port":{}}]}}`))
	require.ErrorContains(t, err, "self.selves[1].port: ")
}
