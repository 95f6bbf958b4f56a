package codec_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

var jsonTypes = []reflect.Type{
	reflect.TypeFor[corev1.Pod](), reflect.TypeFor[unstructured.Unstructured](), reflect.TypeFor[small](),
}

// requireSharedAlike decodes b twice with shared parts. Both objects must be equal to one without.
func requireSharedAlike(t *testing.T, b []byte) {
	for _, typ := range jsonTypes {
		want, wantErr := codec.SharedJSON(typ, false)()(b)
		shared := codec.SharedJSON(typ, true)()
		for range 3 { // parts are kept when they come for the second time
			got, err := shared(b)
			require.Equal(t, wantErr, err, "%s: %s", typ, b)
			if err == nil {
				require.True(t, reflect.DeepEqual(want, got), "%s: %s\nwant %+v\ngot  %+v", typ, b, want, got)
			}
		}
	}
}

// TestSharedJSONLikeOthers decodes random sequences of objects of every kind of k8s.io/api, with and without shared
// parts. Objects come several times, and some have all their members twice, from two objects.
func TestSharedJSONLikeOthers(t *testing.T) {
	decoded := 0
	for n, typ := range kinds(t) {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		var texts [][]byte
		for seed := range uint64(3) {
			v := reflect.New(typ)
			newFiller(seed, float64(seed%4)/4).fill(v.Elem(), 0)
			b := mustJSON(v.Interface())
			texts = append(texts, b)
			if first := texts[0]; len(first) > 2 && len(b) > 2 {
				texts = append(texts, fmt.Appendf(nil, "%s,%s", first[:len(first)-1], b[1:]))
			}
		}
		plain, shared := codec.SharedJSON(typ, false)(), codec.SharedJSON(typ, true)()
		for range 16 {
			b := texts[random.IntN(len(texts))]
			want, wantErr := plain(b)
			got, err := shared(b)
			require.Equal(t, wantErr, err, typ)
			if err == nil {
				decoded++
				require.True(t, reflect.DeepEqual(want, got), "%s\n%s\nwant %+v\ngot  %+v", typ, b, want, got)
			}
		}
	}
	require.Greater(t, decoded, 1000)
}

func TestSharedOddJSON(t *testing.T) {
	for _, b := range []string{
		`{"spec":{"containers":[{"name":"a","image":"registry.example.com/app"}]},"spec":{"containers":[{"name":"b"}]}}`,
		`{"metadata":{"labels":{"a":"a long value of a label"},"labels":{"b":"another long value, merged"}}}`,
		`{"spec":{"nodeSelector":{"a":"a long value of a label"},"nodeSelector":null}}`,
		`{"spec":null,"spec":{"containers":[{"name":"a","image":"registry.example.com/app"}]}}`,
		`{"metadata":{"finalizers":[                                  ]},"spec":{"containers":[                        ]}}`,
		`{"metadata":{"labels":{                                  }},"status":{                                        }}`,
		`{"spec":{"containers":{"name":"an object, not an array"}}}`,
		`{"spec":["an array, not an object", "an array, not an object"]}`,
		`{"metadata":{"ownerReferences":[{"name":"the name of an owner","uid":7}]}}`,
	} {
		requireSharedAlike(t, []byte(b))
	}
}

// TestWhatJSONShares has two states of a pod, and replicas.
func TestWhatJSONShares(t *testing.T) {
	decoders(t)
	size := resource.MustParse("1Gi")
	pod := func(n int) *corev1.Pod {
		pod := newPod(n)
		pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}
		return pod
	}
	state := pod(1)
	state.ResourceVersion, state.Status.Conditions[0].Message = "200001", "changed"

	unlessCrowded(t, func(t *assert.CollectT) {
		shared := codec.SharedJSON(reflect.TypeFor[corev1.Pod](), true)()
		decode := func(pod *corev1.Pod) *corev1.Pod {
			obj := must.Get(shared(mustJSON(pod)))(t)
			return obj.(*corev1.Pod)
		}
		old, updated := decode(pod(1)), decode(state)
		require.Same(t, &old.OwnerReferences[0], &updated.OwnerReferences[0])
		require.Equal(t, "changed", updated.Status.Conditions[0].Message)
		decode(pod(2))
		a, b := decode(pod(3)), decode(pod(4))
		require.Same(t, &a.Spec.Containers[0], &b.Spec.Containers[0], "the containers of a replica")
		require.Equal(t, len(a.Spec.Containers), cap(a.Spec.Containers), "an append makes a copy")
		require.NotSame(t, a.Spec.Volumes[0].EmptyDir.SizeLimit, b.Spec.Volumes[0].EmptyDir.SizeLimit, "its String changes it")

		plain := newPod(1)
		first := decode(plain)
		plain.ResourceVersion = "200002"
		require.Same(t, &first.Spec.Containers[0], &decode(plain).Spec.Containers[0], "the spec of the previous state")

		generic := codec.SharedJSON(reflect.TypeFor[unstructured.Unstructured](), true)()
		content := func(pod *corev1.Pod) map[string]any {
			obj := must.Get(generic(mustJSON(pod)))(t)
			return obj.(*unstructured.Unstructured).Object
		}
		before, after := content(pod(1)), content(state)
		spec := after["spec"].(map[string]any)
		before["spec"].(map[string]any)["probe"] = true
		require.Contains(t, spec, "probe", "equal maps are one map")
		require.NotContains(t, after["status"], "probe")
	})
}

// measured has quantities that a text may lack.
type measured struct {
	Metadata struct {
		Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Spec struct {
		Name  string            `json:"name" protobuf:"bytes,1,opt,name=name"`
		Size  resource.Quantity `json:"size" protobuf:"bytes,2,opt,name=size"`
		Parts []measuredPart    `json:"parts" protobuf:"bytes,3,rep,name=parts"`
		Texts []string          `json:"texts" protobuf:"bytes,4,rep,name=texts"`
	} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

type measuredPart struct {
	Name string            `json:"name" protobuf:"bytes,1,opt,name=name"`
	Size resource.Quantity `json:"size" protobuf:"bytes,2,opt,name=size"`
}

// TestAbsentQuantitiesAreNotShared has readers that call String of quantities, some of which the text does not have,
// while others are decoded. String stores what it returns.
func TestAbsentQuantitiesAreNotShared(t *testing.T) {
	decoders(t)
	typ := reflect.TypeFor[measured]()
	text := []byte(`{"metadata":{"name":"a"},"spec":{"name":"a long name of a spec","size":5000000,` +
		`"parts":[{"name":"a long name of a part"}],"texts":["a text that is long enough to be shared"]}}`)
	length := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	wire := length(2, slices.Concat(length(1, []byte("a long name of a spec")), length(3, length(1, []byte("a long name of a part"))),
		length(4, []byte("a text that is long enough to be shared"))))
	for form, c := range map[string]struct {
		decode func(b []byte) (any, error)
		b      []byte
	}{
		"JSON":     {codec.SharedJSON(typ, true)(), text},
		"protobuf": {codec.SharedMessages(typ)(), wire},
	} {
		t.Run(form, func(t *testing.T) {
			var all []*measured
			var reading sync.WaitGroup
			for range 6 {
				obj := must.Get(c.decode(c.b))(t)
				o := obj.(*measured)
				all = append(all, o)
				reading.Go(func() { _, _ = o.Spec.Size.String(), o.Spec.Parts[0].Size.String() })
			}
			reading.Wait()
			require.NotSame(t, &all[4].Spec.Parts[0], &all[5].Spec.Parts[0])
			require.Same(t, &all[4].Spec.Texts[0], &all[5].Spec.Texts[0])
		})
	}
}
