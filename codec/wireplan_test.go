package codec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// sameAsUnmarshal decodes a message with the Unmarshal of typ and by the numbers of its fields, and compares them. The
// decoder may reject messages that are not protobuf although Unmarshal accepts them.
func sameAsUnmarshal(t testing.TB, b []byte, typ reflect.Type, decode func([]byte) (any, error)) {
	t.Helper()
	want := reflect.New(typ).Interface()
	wantErr := want.(interface{ Unmarshal([]byte) error }).Unmarshal(b)
	got, err := decode(b)
	if err == nil {
		require.NoError(t, wantErr, "%s % x", typ, b)
		require.True(t, reflect.DeepEqual(want, got), "%s % x\nwant %+v\ngot  %+v", typ, b, want, got)
	} else if wantErr == nil {
		require.ErrorContains(t, err, "bad wire format", "%s % x", typ, b)
	}
}

// Every kind of k8s.io/api that is generated from protobuf gives the same result by the numbers of its fields.
func TestWirePlanLikeUnmarshal(t *testing.T) {
	planned := 0
	for _, typ := range kinds(t) {
		v, ok := newMessage(typ)
		decode := codec.DecodeMessage(typ)
		if !ok || decode == nil {
			continue
		}
		planned++
		for seed := range uint64(6) {
			newFiller(seed, float64(seed%4)/4).fill(v.Elem(), 0)
			b := must.Get(v.Interface().(interface{ Marshal() ([]byte, error) }).Marshal())(t)
			want := reflect.New(typ).Interface()
			require.NoError(t, want.(interface{ Unmarshal([]byte) error }).Unmarshal(b))
			got, err := decode(b)
			require.NoError(t, err, typ)
			require.True(t, reflect.DeepEqual(want, got), "%s\nwant %+v\ngot  %+v", typ, want, got)

			// Cut off, and with a repeated beginning, which is merged.
			sameAsUnmarshal(t, b[:len(b)*int(seed)/6], typ, decode)
			sameAsUnmarshal(t, append(slices.Clone(b), b...), typ, decode)
			v.Elem().SetZero()
		}
	}
	require.Greater(t, planned, 100)
}

// wired is a projection of a pod with field numbers.
type wired struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`

	Spec struct {
		NodeName   string `json:"nodeName" protobuf:"bytes,10,opt,name=nodeName"`
		Containers []struct {
			Name      string                      `json:"name" protobuf:"bytes,1,opt,name=name"`
			Args      []string                    `json:"args" protobuf:"bytes,4,rep,name=args"`
			Resources corev1.ResourceRequirements `json:"resources" protobuf:"bytes,8,opt,name=resources"`
			Probe     *struct {
				Period int32 `json:"periodSeconds" protobuf:"varint,4,opt,name=periodSeconds"`
			} `json:"livenessProbe" protobuf:"bytes,10,opt,name=livenessProbe"`
		} `json:"containers" protobuf:"bytes,2,rep,name=containers"`
		Grace *int64 `json:"terminationGracePeriodSeconds" protobuf:"varint,4,opt,name=terminationGracePeriodSeconds"`
	} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	Status wiredStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
	Seen   bool        `json:"-"`
}

type wiredStatus struct {
	Phase     corev1.PodPhase `json:"phase" protobuf:"bytes,1,opt,name=phase,casttype=PodPhase"`
	StartTime *metav1.Time    `json:"startTime" protobuf:"bytes,7,opt,name=startTime"`
}

var wiredCodec = codec.New[*wired](codec.Options{})

// A user's struct with field numbers gives the same result from protobuf and from JSON.
// TestMapEntriesLikeUnmarshal decodes entries that lack a key or a value, or have several.
func TestMapEntriesLikeUnmarshal(t *testing.T) {
	field := func(number protowire.Number, content ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	key, value := field(1, 'k'), field(2, 0x0a, 1, '7') // a string, or a message with a string
	for _, m := range []struct {
		typ any
		at  []protowire.Number // the numbers of the fields down to the map
	}{
		{&corev1.ConfigMap{}, []protowire.Number{2}},               // map[string]string
		{&corev1.ConfigMap{}, []protowire.Number{3}},               // map[string][]byte
		{&corev1.Node{}, []protowire.Number{3, 1}},                 // map[ResourceName]Quantity
		{&resourcev1.ResourceSlice{}, []protowire.Number{2, 6, 2}}, // map[QualifiedName]DeviceAttribute
	} {
		typ := reflect.TypeOf(m.typ).Elem()
		decode := codec.DecodeMessage(typ)
		require.NotNil(t, decode, typ)
		same := func(entries ...[]byte) {
			t.Helper()
			var b []byte
			for _, e := range entries {
				b = append(b, field(m.at[len(m.at)-1], e...)...)
			}
			for _, number := range slices.Backward(m.at[:len(m.at)-1]) {
				b = field(number, b...)
			}
			sameAsUnmarshal(t, b, typ, decode)
		}
		for _, entry := range [][]byte{
			nil, key, value, slices.Concat(key, value), slices.Concat(value, key), slices.Concat(key, field(2)), slices.Concat(key, value, value),
			slices.Concat(key, value, field(2)), slices.Concat(key, field(3), value), slices.Concat(key, key),
		} {
			same(entry)
			same(slices.Concat(field(1, 'x'), value), entry)
		}
	}
}

func TestProjectionFromProtobuf(t *testing.T) {
	require.True(t, wiredCodec.Protobuf())
	require.False(t, wiredCodec.MetadataOnly())
	o := api.Options[*wired]{DropManagedFields: true}
	fromJSON, _, err := collect(wiredCodec, string(podList(3, asJSON)), asJSON, pods, o)
	require.NoError(t, err)
	fromProtobuf, meta, err := collect(wiredCodec, string(podList(3, asProtobuf)), asProtobuf, pods, o)
	require.NoError(t, err)
	require.Equal(t, "4242", meta.ResourceVersion)
	for i, pod := range fromProtobuf {
		requireSame(t, fromJSON[i], pod)
		require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, pod.TypeMeta)
		require.Empty(t, pod.ManagedFields)
		require.Equal(t, newPod(i).Spec.Containers[0].Resources.Limits.Cpu().Value(), pod.Spec.Containers[0].Resources.Limits.Cpu().Value())
	}
	kept, _, err := collect(wiredCodec, string(podList(1, asProtobuf)), asProtobuf, pods, api.Options[*wired]{})
	require.NoError(t, err)
	requireSame(t, newPod(0).ManagedFields, kept[0].ManagedFields)
	all, _ := events(t, wiredCodec, streamOf(asProtobuf, "ADDED", newPod(1), "DELETED", newPod(2)), asProtobuf, pods, o)
	requireSame(t, fromJSON[1], all[0].Object)
	require.Equal(t, "100002", all[1].ResourceVersion)
}

// numbers has every scalar that a tag can name.
type numbers struct {
	Metadata struct {
		Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Bool     bool                            `protobuf:"varint,2,opt"`
	Int      int                             `protobuf:"varint,3,opt"`
	Int32    int32                           `protobuf:"varint,4,opt"`
	Zigzag   int64                           `protobuf:"zigzag64,5,opt"`
	Uint32   uint32                          `protobuf:"varint,6,opt"`
	Fixed    uint64                          `protobuf:"fixed64,7,opt"`
	Signed   int32                           `protobuf:"fixed32,8,opt"`
	Float32  float32                         `protobuf:"fixed32,9,opt"`
	Float64  float64                         `protobuf:"fixed64,10,opt"`
	Many     []int32                         `protobuf:"varint,11,rep"`
	Bytes    []byte                          `protobuf:"bytes,12,opt"`
	ManyB    [][]byte                        `protobuf:"bytes,13,rep"`
	ByNumber map[int32]types.UID             `protobuf:"bytes,14,rep"`
	Structs  map[string]wiredStatus          `protobuf:"bytes,15,rep"`
	Doubles  []float64                       `protobuf:"fixed64,16,rep"`
	Pointer  *bool                           `protobuf:"varint,17,opt"`
	Port     intstr.IntOrString              `protobuf:"bytes,18,opt"`
	Within   *numbers                        `protobuf:"bytes,19,opt"`
	Amount   resource.Quantity               `protobuf:"bytes,20,opt"`
	Micro    metav1.MicroTime                `protobuf:"bytes,21,opt"`
	Wide     int64                           `protobuf:"fixed32,22,opt"`
	Time     metav1.Time                     `protobuf:"bytes,23,opt"`
	Named    map[types.UID]types.UID         `protobuf:"bytes,24,rep"`
	Amounts  map[types.UID]resource.Quantity `protobuf:"bytes,25,rep"`
}

func message(b []byte) func(num protowire.Number, v any) []byte {
	return func(num protowire.Number, v any) []byte {
		switch v := v.(type) {
		case uint64:
			return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
		case int:
			return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
		case float64:
			return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), math.Float64bits(v))
		case float32:
			return protowire.AppendFixed32(protowire.AppendTag(b, num, protowire.Fixed32Type), math.Float32bits(v))
		case []byte:
			return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
		case string:
			return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
		}
		panic(fmt.Sprintf("%T", v))
	}
}

func TestWirePlanReadsEveryScalar(t *testing.T) {
	var b []byte
	add := func(num protowire.Number, v any) { b = message(b)(num, v) }
	add(2, 1)
	add(3, uint64(math.MaxUint64)) // -1
	add(4, uint64(math.MaxUint32)) // cut to 32 bits, as generated code does
	add(5, protowire.EncodeZigZag(-7))
	add(6, uint64(7))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), 1<<63)
	b = protowire.AppendFixed32(protowire.AppendTag(b, 8, protowire.Fixed32Type), math.MaxUint32)
	add(9, float32(1.5))
	add(10, -2.5)
	add(11, 1)
	add(11, []byte{2, 0x80, 1}) // packed
	add(12, []byte{})
	add(13, "x")
	add(13, "")
	add(14, message(message(nil)(1, 5))(2, "five"))
	add(14, []byte{})
	add(15, message(message(nil)(2, message(nil)(1, "Running")))(1, "key"))
	add(16, 0.5)
	add(16, protowire.AppendFixed64(nil, math.Float64bits(4)))
	add(17, 0)
	add(18, message(message(nil)(1, 1))(3, "50%"))
	add(19, message(nil)(3, 9))
	add(19, message(nil)(4, 8))
	add(20, message(nil)(1, "250m"))
	b = protowire.AppendFixed32(protowire.AppendTag(b, 22, protowire.Fixed32Type), math.MaxUint32)
	add(23, message(message(nil)(1, 60))(2, 5))
	add(24, message(message(nil)(1, "plain"))(2, "entry"))
	add(24, message(message(nil)(2, "value"))(1, "behind"))
	add(24, message(message(nil)(1, "alone"))(3, "unknown"))
	add(24, message(message(message(nil)(1, "first"))(2, "entry"))(1, "second"))
	add(25, message(message(nil)(1, "plain"))(2, message(nil)(1, "1")))
	add(25, message(message(nil)(1, "none"))(2, []byte{}))
	add(25, message(nil)(2, message(nil)(1, "2")))
	add(300, "unknown")
	b = append(protowire.AppendVarint(protowire.AppendTag(protowire.AppendTag(b, 301, protowire.StartGroupType), 1, protowire.VarintType), 5), protowire.AppendTag(nil, 301, protowire.EndGroupType)...)

	got := must.Get(codec.DecodeMessage(reflect.TypeFor[numbers]())(b))(t)
	no := false
	require.Equal(t, &numbers{
		Bool: true, Int: -1, Int32: -1, Zigzag: -7, Uint32: 7, Fixed: 1 << 63, Signed: -1, Float32: 1.5, Float64: -2.5,
		Many: []int32{1, 2, 128}, Bytes: []byte{}, ManyB: [][]byte{[]byte("x"), {}},
		ByNumber: map[int32]types.UID{5: "five", 0: ""}, Structs: map[string]wiredStatus{"key": {Phase: "Running"}},
		Doubles: []float64{0.5, 4}, Pointer: &no, Port: intstr.FromString("50%"), Within: &numbers{Int: 9, Int32: 8},
		Amount: resource.MustParse("250m"), Wide: -1, Time: metav1.Unix(60, 0),
		Named:   map[types.UID]types.UID{"plain": "entry", "behind": "value", "alone": "", "second": "entry"},
		Amounts: map[types.UID]resource.Quantity{"plain": resource.MustParse("1"), "none": {}, "": resource.MustParse("2")},
	}, got)
}

func TestEmbeddedStructsFromProtobuf(t *testing.T) {
	type Common struct {
		Metadata metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	}
	type embedding struct {
		Note string `json:"-"`
		Common
	}
	got := must.Get(codec.DecodeMessage(reflect.TypeFor[embedding]())(message(nil)(1, message(nil)(1, "a"))))(t)
	require.Equal(t, &embedding{Common: Common{metav1.ObjectMeta{Name: "a"}}}, got)
}

func TestTimesLikeUnmarshal(t *testing.T) {
	decode := codec.DecodeMessage(reflect.TypeFor[corev1.Pod]())
	for _, written := range [][]byte{
		{},
		{8, 5},
		{8, 5, 16, 0},
		{16, 7, 8, 5},
		{8, 5, 8, 6},
		{8, 5, 16, 7, 8, 6},
		{8, 5, 16, 0x80, 1},
		{8, 5, 16, 0x80},
		{8, 0x80},
		{8},
		{10, 0},
		{8, 5, 24, 0},
		{8, 5, 18, 0},
		{8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		{8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
	} {
		sameAsUnmarshal(t, message(nil)(1, message(nil)(8, written)), reflect.TypeFor[corev1.Pod](), decode)
	}
}

func TestSimilarStringsAreNotConfused(t *testing.T) {
	decode := codec.DecodeMessage(reflect.TypeFor[corev1.Pod]())
	alike := []string{"ab", "ac", "bb", "abc", "adc", "adbc", "abbc", "beginning-1-end-of-it", "beginning-2-end-of-it", "beginning-22-end-of-it", strings.Repeat("x", 300), ""}
	for range 3 {
		for _, name := range alike {
			pod := must.Get(decode(message(nil)(1, message(message(nil)(1, name))(11, message(message(nil)(1, name))(2, name)))))(t)
			require.Equal(t, metav1.ObjectMeta{Name: name, Labels: map[string]string{name: name}}, pod.(*corev1.Pod).ObjectMeta)
		}
	}
}

// An append to a slice of a shared object makes a copy.
func TestSlicesHaveNoRoomLeft(t *testing.T) {
	b := message(message(message(nil)(11, 1))(11, 2))(11, 3)
	b = message(message(message(b)(13, "x"))(13, "y"))(13, "z")
	got := must.Get(codec.DecodeMessage(reflect.TypeFor[numbers]())(b))(t)
	require.Equal(t, 3, cap(got.(*numbers).Many))
	require.Equal(t, 3, cap(got.(*numbers).ManyB))
	pod := must.Get(podCodec.DecodeObject(context.Background(), strings.NewReader(string(sealed("v1", "Pod", newPod(1)))), asProtobuf, pods))(t)
	require.Len(t, pod.Spec.Containers, cap(pod.Spec.Containers))
	require.Len(t, pod.Status.Conditions, cap(pod.Status.Conditions))
}

func TestWirePlanRefuses(t *testing.T) {
	decode := codec.DecodeMessage(reflect.TypeFor[numbers]())
	group := append(protowire.AppendTag(nil, 2, protowire.StartGroupType), protowire.AppendTag(nil, 2, protowire.EndGroupType)...)
	for name, test := range map[string]struct {
		b    []byte
		path string
	}{
		"a string for a boolean":     {message(nil)(2, "x"), "Bool: "},
		"a number for a message":     {message(nil)(1, 5), "metadata: "},
		"a number for a string":      {message(nil)(1, message(nil)(1, 5)), "metadata.name: "},
		"a number for bytes":         {message(nil)(12, 5), "Bytes: "},
		"a number for a quantity":    {message(nil)(20, 5), "Amount: "},
		"a bad quantity":             {message(nil)(20, message(nil)(1, "much")), "Amount: "},
		"a double for a float":       {message(nil)(9, 1.5), "Float32: "},
		"a bad quantity in a map":    {message(nil)(25, message(message(nil)(1, "k"))(2, message(nil)(1, "much"))), "Amounts: "},
		"a number for a key":         {message(nil)(24, message(message(nil)(1, 5))(2, "v")), "Named: "},
		"a number for a time":        {message(nil)(23, 5), "Time: "},
		"a time cut short":           {message(nil)(23, []byte{8, 0x80}), "Time: "},
		"a number for a map":         {message(nil)(14, 5), "ByNumber: "},
		"a bad key":                  {message(nil)(14, message(nil)(1, "x")), "ByNumber: "},
		"a bad value":                {message(nil)(15, message(nil)(2, 5)), "Structs: "},
		"an entry cut short":         {message(nil)(15, []byte{0x0a, 5}), "Structs: "},
		"a packed number cut short":  {message(nil)(11, []byte{0x80}), "Many: "},
		"a group for a boolean":      {group, "Bool: "},
		"a length beyond the end":    {[]byte{12<<3 | 2, 100, 'x'}, "Bytes: "},
		"a string beyond the end":    {message(nil)(1, []byte{1<<3 | 2, 100}), "metadata.name: "},
		"a tag cut short":            {[]byte{0x80}, ""},
		"field zero":                 {[]byte{0x02, 0x01, 'x'}, ""},
		"an unknown field cut short": {[]byte{30<<3&0x7f | 0x80 | 2, 1, 100}, ""},
		"an end without a group":     {protowire.AppendTag(nil, 300, protowire.EndGroupType), ""},
		"an open group":              {protowire.AppendTag(nil, 300, protowire.StartGroupType), ""},
	} {
		_, err := decode(test.b)
		require.Error(t, err, name)
		require.True(t, strings.HasPrefix(err.Error(), test.path), "%s: %v", name, err)
	}
	broken := sealedBytes("v1", "Pod", message(message(nil)(1, message(nil)(1, "a")))(2, 5))
	_, err := wiredCodec.DecodeObject(context.Background(), strings.NewReader(string(broken)), asProtobuf, pods)
	var undecodable *api.UndecodableError
	require.ErrorAs(t, err, &undecodable)
	require.Equal(t, "a", undecodable.Key.Name)
	require.ErrorContains(t, err, "spec: the wire type 0 where 2 should be")
}

func TestWirePlanBoundsNesting(t *testing.T) {
	decode := codec.DecodeMessage(reflect.TypeFor[numbers]())
	nest := func(depth int) []byte {
		var b []byte // from the inside out, so backwards
		for range depth {
			length := protowire.AppendVarint(nil, uint64(len(b)))
			slices.Reverse(length)
			tag := protowire.AppendTag(nil, 19, protowire.BytesType)
			slices.Reverse(tag)
			b = append(append(b, length...), tag...)
		}
		slices.Reverse(b)
		return b
	}
	must.Get(decode(nest(9999)))(t)
	require.ErrorContains(t, must.Err(decode(nest(10000))), "nested deeper than 10000 levels")
	var side []byte
	for range 20_000 {
		side = message(side)(19, "")
	}
	require.NoError(t, must.Err(decode(side)), "side by side is not deep")
}

// Only a struct whose fields all have numbers is requested in protobuf.
func TestTypesThatAreReadFromProtobuf(t *testing.T) {
	type meta struct {
		Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	}
	type common struct {
		Metadata meta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	}
	type kindOnly struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	for name, test := range map[string]struct {
		want bool
		got  interface{ Protobuf() bool }
	}{
		"metadata alone": {true, codec.New[*common](codec.Options{})},
		"kind beside it": {true, codec.New[*struct {
			kindOnly
			common
		}](codec.Options{})},
		"a field kept from both": {true, codec.New[*struct {
			common
			Note any `json:"-"`
		}](codec.Options{})},
		"no numbers at all": {false, smallCodec},
		"one without a number": {false, codec.New[*struct {
			common
			Spec struct {
				NodeName string `json:"nodeName"`
			} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
		}](codec.Options{})},
		"a number twice": {false, codec.New[*struct {
			common
			Spec   meta `json:"spec" protobuf:"bytes,2,opt,name=spec"`
			Status meta `json:"status" protobuf:"bytes,2,opt,name=status"`
		}](codec.Options{})},
		"metadata elsewhere": {false, codec.New[*struct {
			Metadata meta `json:"metadata" protobuf:"bytes,2,opt,name=metadata"`
		}](codec.Options{})},
		"anything": {false, codec.New[*struct {
			common
			Spec any `json:"spec" protobuf:"bytes,2,opt,name=spec"`
		}](codec.Options{})},
		"a number out of range": {false, codec.New[*struct {
			common
			Spec meta `json:"spec" protobuf:"bytes,5000,opt,name=spec"`
		}](codec.Options{})},
		"a slice of slices": {false, codec.New[*struct {
			common
			Spec [][]string `json:"spec" protobuf:"bytes,2,rep,name=spec"`
		}](codec.Options{})},
		"a map of maps": {false, codec.New[*struct {
			common
			Spec map[string]map[string]string `json:"spec" protobuf:"bytes,2,rep,name=spec"`
		}](codec.Options{})},
		"its own Unmarshal": {true, codec.New[*ownUnmarshal](codec.Options{})},
	} {
		require.Equal(t, test.want, test.got.Protobuf(), name)
	}
	require.Equal(t, asProtobuf+","+asJSON, wiredCodec.Accept(codec.AcceptOptions{}))
	require.Equal(t, asJSON, smallCodec.Accept(codec.AcceptOptions{}))
}

// ownUnmarshal does something that no tag describes.
type ownUnmarshal struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	seen              int
}

func (o *ownUnmarshal) Unmarshal(b []byte) error {
	o.seen = len(b)
	if o.seen == 0 {
		return errors.New("nothing")
	}
	return nil
}

func TestOwnUnmarshalIsUsed(t *testing.T) {
	c := codec.New[*ownUnmarshal](codec.Options{})
	raw := protobufPod()
	o := must.Get(c.DecodeObject(context.Background(), strings.NewReader(string(sealedBytes("v1", "Pod", raw))), asProtobuf, pods))(t)
	require.Equal(t, len(raw), o.seen)
	require.Empty(t, o.Name)
}

// FuzzWirePlan compares decoding by field numbers with the Unmarshal of go-to-protobuf.
func FuzzWirePlan(f *testing.F) {
	f.Add(mustMarshal(newPod(1)))
	f.Add(protobufPod())
	typ := reflect.TypeFor[corev1.Pod]()
	decode := codec.DecodeMessage(typ)
	projection := codec.DecodeMessage(reflect.TypeFor[wired]())
	f.Fuzz(func(t *testing.T, b []byte) {
		sameAsUnmarshal(t, b, typ, decode)
		if _, err := decode(b); err == nil {
			require.NoError(t, must.Err(projection(b)), "every pod fits the projection")
		}
	})
}
