package codec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// decoders returns a function that makes decoders of pods that share parts.
func decoders(t testing.TB) func() func(b []byte) (any, error) {
	made := codec.SharedMessages(reflect.TypeFor[corev1.Pod]())
	if made == nil {
		t.Skip("built without unsafe")
	}
	return made
}

type marshaler interface{ Marshal() ([]byte, error) }

func wireOf(t testing.TB, v marshaler) []byte {
	return must.Get(v.Marshal())(t)
}

// TestSharedPartsLikeOthers decodes random sequences of messages of every kind of k8s.io/api, with and without shared
// parts. Messages come several times. Some are cut off, and some have all their fields twice, from two messages.
func TestSharedPartsLikeOthers(t *testing.T) {
	decoders(t)
	planned := 0
	for _, typ := range kinds(t) {
		v, ok := newMessage(typ)
		decode := codec.DecodeMessage(typ)
		if !ok || decode == nil {
			continue
		}
		planned++
		random := rand.New(rand.NewPCG(1, uint64(planned)))
		var messages [][]byte
		for seed := range uint64(3) {
			newFiller(seed, float64(seed%4)/4).fill(v.Elem(), 0)
			b := wireOf(t, v.Interface().(marshaler))
			first := slices.Clone(append(messages, b)[0])
			messages = append(messages, b, b[:random.IntN(len(b)+1)], append(first, b...))
			v.Elem().SetZero()
		}
		shared := codec.SharedMessages(typ)()
		for range 16 {
			b := messages[random.IntN(len(messages))]
			want, wantErr := decode(b)
			got, err := shared(b)
			require.Equal(t, wantErr, err, typ)
			if err == nil {
				require.True(t, reflect.DeepEqual(want, got), "%s\nwant %+v\ngot  %+v", typ, want, got)
			}
		}
	}
	require.Greater(t, planned, 100)
}

func TestRandomUpdatesShareParts(t *testing.T) {
	wire := func(pod *corev1.Pod) []byte { return wireOf(t, pod) }
	text := func(pod *corev1.Pod) []byte { return mustJSON(pod) }
	t.Run("protobuf", func(t *testing.T) {
		randomUpdates(t, decoders(t)(), codec.DecodeMessage(reflect.TypeFor[corev1.Pod]()), wire)
	})
	for _, typ := range jsonTypes {
		t.Run("JSON "+typ.String(), func(t *testing.T) {
			randomUpdates(t, codec.SharedJSON(typ, true)(), codec.SharedJSON(typ, false)(), text)
		})
	}
}

func randomUpdates(t *testing.T, shared, plain func(b []byte) (any, error), encode func(pod *corev1.Pod) []byte) {
	random := rand.New(rand.NewPCG(1, 2))
	pods := make([]*corev1.Pod, 20)
	for i := range pods {
		pods[i] = newPod(i)
	}
	var kept []any // the objects of which later ones have parts
	var states []any
	steps := 600
	if testing.Short() {
		steps = 100
	}
	for step := range steps {
		pod := pods[random.IntN(len(pods))]
		pod.ResourceVersion = fmt.Sprint(step)
		switch c := &pod.Spec.Containers[random.IntN(len(pod.Spec.Containers))]; random.IntN(8) {
		case 0:
			c.Image = fmt.Sprintf("registry.example.com/team/app:v%d", random.IntN(4))
		case 1:
			c.Env = append(c.Env[:2:2], corev1.EnvVar{Name: "RELEASE", Value: fmt.Sprint(random.IntN(3))})
		case 2:
			pod.Labels["pod-template-hash"] = fmt.Sprint(random.IntN(5))
		case 3:
			pod.Spec.Tolerations = pod.Spec.Tolerations[:random.IntN(len(pod.Spec.Tolerations)+1)]
		case 4:
			size := resource.MustParse("1Gi")
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}
		default:
			pod.Status.Conditions[0].Message = fmt.Sprint(random.IntN(1000))
		}
		b := encode(pod)
		want := must.Get(plain(b))(t)
		got := must.Get(shared(b))(t)
		require.True(t, reflect.DeepEqual(want, got))
		kept, states = append(kept, got), append(states, want)
	}
	for i := range kept {
		require.True(t, reflect.DeepEqual(states[i], kept[i]), "an older object has changed")
	}
}

// unlessCrowded repeats a test with other tables if it fails. A table forgets a part if another part has its place, and
// which parts these are depends on the random key.
func unlessCrowded(t *testing.T, test func(c *assert.CollectT)) {
	require.EventuallyWithT(t, test, 10*time.Second, time.Millisecond)
}

// TestWhatIsShared has two states of a pod, and a replica of it.
func TestWhatIsShared(t *testing.T) {
	decoders(t)
	unlessCrowded(t, func(c *assert.CollectT) {
		shared := decoders(t)()
		decode := func(pod *corev1.Pod) *corev1.Pod {
			obj := must.Get(shared(wireOf(t, pod)))(c)
			return obj.(*corev1.Pod)
		}
		const first, replica, other = 1, 2, 3
		old := decode(newPod(first))
		state := newPod(first)
		state.ResourceVersion, state.Status.Conditions[0].Message = "200001", "changed"
		updated := decode(state)
		require.Same(c, &old.Spec.Containers[0], &updated.Spec.Containers[0], "the spec of the previous state")
		require.Same(c, &old.Spec.Tolerations[0], &updated.Spec.Tolerations[0])
		require.Equal(c, "changed", updated.Status.Conditions[0].Message)

		decode(newPod(replica)) // the second time that its parts come
		a, b := decode(newPod(other)), decode(newPod(other+1))
		require.NotEqual(c, a.Spec.NodeName, b.Spec.NodeName)
		require.Same(c, &a.Spec.Containers[0], &b.Spec.Containers[0], "the containers of a replica")
		require.Same(c, &a.OwnerReferences[0], &b.OwnerReferences[0])
		require.NotEqual(c, a.Labels, b.Labels)
		require.Equal(c, len(a.Spec.Containers), cap(a.Spec.Containers), "an append makes a copy")
		a.Spec.Containers[0].Resources.Requests["probe"] = resource.Quantity{}
		require.Contains(c, b.Spec.Containers[1].Resources.Requests, corev1.ResourceName("probe"), "equal maps are one map")
	})
}

// TestQuantitiesAreNotShared has a quantity to which a program can refer. Its String changes it.
func TestQuantitiesAreNotShared(t *testing.T) {
	decoders(t)
	unlessCrowded(t, func(c *assert.CollectT) {
		shared := decoders(t)()
		size, pod := resource.MustParse("1Gi"), newPod(1)
		pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}
		var all []*corev1.Pod
		for range 4 {
			obj := must.Get(shared(wireOf(t, pod)))(c)
			all = append(all, obj.(*corev1.Pod))
		}
		require.Same(c, &all[2].Spec.Containers[0], &all[3].Spec.Containers[0])
		require.NotSame(c, all[2].Spec.Volumes[0].EmptyDir.SizeLimit, all[3].Spec.Volumes[0].EmptyDir.SizeLimit)
		require.Same(c, all[2].Spec.Volumes[1].Projected, all[3].Spec.Volumes[1].Projected)
	})
}

// TestOneObjectIsNotShared has an answer with one object, which its caller owns, between watches that share parts.
func TestOneObjectIsNotShared(t *testing.T) {
	decoders(t)
	o := podOptions{DropManagedFields: true, ShareParts: true}
	c := codec.New[*corev1.Pod](codec.Options{})
	stream := streamOf(asProtobuf, "ADDED", newPod(1), "MODIFIED", newPod(1))
	all, _ := events(t, c, stream, asProtobuf, pods, o)
	require.Same(t, &all[0].Object.Spec.Containers[0], &all[1].Object.Spec.Containers[0])
	body := must.Get(codec.Marshal(newPod(1), asProtobuf, pods))(t)
	own := must.Get(c.DecodeObject(context.Background(), bytes.NewReader(body), asProtobuf, pods))(t)
	require.NotSame(t, &all[0].Object.Spec.Containers[0], &own.Spec.Containers[0])
	o.ShareParts = false
	others, _ := events(t, c, stream, asProtobuf, pods, o)
	require.NotSame(t, &others[0].Object.Spec.Containers[0], &others[1].Object.Spec.Containers[0])
}

// selfDecoded decodes itself.
type selfDecoded struct{ Text string }

func (o *selfDecoded) Unmarshal(b []byte) error {
	o.Text = string(b)
	return nil
}

// TestTypesWithCodeAreNotShared has a slice whose elements decode themselves, and one whose elements do not.
func TestTypesWithCodeAreNotShared(t *testing.T) {
	type object struct {
		Metadata struct {
			Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
		} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
		Own    []selfDecoded `json:"own" protobuf:"bytes,2,rep,name=own"`
		Plain  []string      `json:"plain" protobuf:"bytes,3,rep,name=plain"`
		Within struct {
			Own   selfDecoded `json:"own" protobuf:"bytes,2,rep,name=own"`
			Plain []string    `json:"plain" protobuf:"bytes,3,rep,name=plain"`
		} `json:"within" protobuf:"bytes,4,opt,name=within"`
	}
	decoders(t)
	shared := codec.SharedMessages(reflect.TypeFor[object]())()
	text := func(b []byte, field protowire.Number) []byte {
		return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), "a text that is long enough to be shared")
	}
	b := text(text(nil, 2), 3)
	b = protowire.AppendBytes(protowire.AppendTag(slices.Clone(b), 4, protowire.BytesType), b)
	var all []*object
	for range 4 {
		obj := must.Get(shared(b))(t)
		all = append(all, obj.(*object))
	}
	require.Equal(t, all[2], all[3])
	require.NotSame(t, &all[2].Own[0], &all[3].Own[0])
	require.Same(t, &all[2].Plain[0], &all[3].Plain[0])
	require.Same(t, &all[2].Within.Plain[0], &all[3].Within.Plain[0])
}

// TestReadersOfSharedParts reads objects while other goroutines decode objects that share their parts.
func TestReadersOfSharedParts(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) {
		readShared(t, decoders(t), func(pod *corev1.Pod) []byte { return wireOf(t, pod) })
	})
	t.Run("JSON", func(t *testing.T) {
		readShared(t, codec.SharedJSON(reflect.TypeFor[corev1.Pod](), true), func(pod *corev1.Pod) []byte { return mustJSON(pod) })
	})
}

func readShared(t *testing.T, made func() func(b []byte) (any, error), encode func(pod *corev1.Pod) []byte) {
	var messages [][]byte
	for i := range 8 {
		for restarts := range 3 {
			pod := newPod(i)
			pod.Status.ContainerStatuses[0].RestartCount = int32(restarts)
			messages = append(messages, encode(pod))
		}
	}
	decoded := make(chan *corev1.Pod)
	var deciders, readers sync.WaitGroup
	for g := range 4 {
		shared := made()
		deciders.Go(func() {
			for i := range 200 {
				obj, err := shared(messages[(i*7+g*5)%len(messages)])
				if err != nil {
					panic(err)
				}
				decoded <- obj.(*corev1.Pod)
			}
		})
	}
	for range 4 {
		readers.Go(func() {
			for pod := range decoded {
				copied := pod.DeepCopy()
				copied.Spec.Containers[0].Env[0].Name = "mine"
				copied.Labels["mine"] = "yes"
				if _, err := json.Marshal(pod); err != nil || pod.Spec.Containers[0].Env[0].Name != "POD_NAME" {
					panic("an object was changed")
				}
			}
		})
	}
	deciders.Wait()
	close(decoded)
	readers.Wait()
}
