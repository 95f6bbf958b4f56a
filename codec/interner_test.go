package codec_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// A repeated string is one string in all objects, in any answer of the codec: a list, then a watch.
func TestRepeatingStringsAreShared(t *testing.T) {
	strings := func(pod *corev1.Pod) []string {
		s := []string{pod.Spec.NodeName, pod.Spec.Containers[0].Image, pod.Status.Conditions[2].Reason, string(pod.Status.Phase)}
		for name, value := range pod.Labels {
			if name == "pod-template-hash" {
				s = append(s, name, value)
			}
		}
		return s
	}
	for _, media := range []string{asJSON, asProtobuf} {
		unlessCrowded(t, func(c *assert.CollectT) {
			made := codec.New[*corev1.Pod](codec.Options{})
			_, _, err := collect(made, string(podList(10, media)), media, pods, podOptions{})
			require.NoError(c, err)
			list, _, err := collect(made, string(podList(10, media)), media, pods, podOptions{})
			require.NoError(c, err)
			watched, _ := events(t, made, frameOf(media, "MODIFIED", newPod(9)), media, pods, podOptions{})
			want, got := strings(list[9]), strings(watched[0].Object)
			require.Len(c, want, 6)
			require.Equal(c, want, got)
			shared := 0
			for i := range want {
				if sameMemory(want[i], got[i]) {
					shared++
				}
			}
			require.GreaterOrEqual(c, shared, 4, "one or two may have lost their places to others")
			require.False(c, sameMemory(list[0].Name, list[1].Name))
		})
	}
}

// Answers that are read at the same time share strings but no memory.
func TestAnswersAreReadConcurrently(t *testing.T) {
	want, _, err := collect(codec.New[*corev1.Pod](codec.Options{}), string(podList(20, asJSON)), asJSON, pods, podOptions{})
	require.NoError(t, err)
	c := codec.New[*corev1.Pod](codec.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			media := []string{asJSON, asProtobuf}[i%2]
			got, _, err := collect(c, string(podList(20, media)), media, pods, podOptions{})
			if err != nil || len(got) != 20 || got[7].Name != want[7].Name || !reflect.DeepEqual(got[7].Spec, want[7].Spec) {
				t.Errorf("%s: %v", media, err)
			}
		})
	}
	wg.Wait()
}

// An object that consists of brackets does not cost a multiple of the limit.
func TestObjectOfTooManyTokens(t *testing.T) {
	const limit = 1 << 20
	c := codec.New[*small](codec.Options{MaxObjectBytes: limit})
	brackets := func(n int) string { return `{"metadata":{"name":"a"},"x":[[]` + strings.Repeat(",[]", n) + "]}" }
	_, err := c.DecodeObject(context.Background(), strings.NewReader(brackets(limit/4/2-100)), asJSON, pods)
	require.NoError(t, err)
	allocated := allocatedBytes(func() {
		_, err = c.DecodeObject(context.Background(), strings.NewReader(brackets(limit/4/2+100)), asJSON, pods)
	})
	require.ErrorIs(t, err, codec.ErrTooLarge)
	require.Less(t, allocated, uint64(16*limit))
	_, err = codec.New[*small](codec.Options{MaxObjectBytes: 100 << 10}).DecodeObject(context.Background(), strings.NewReader(brackets(30_000)), asJSON, pods)
	require.NoError(t, err, "sixty thousand are few")
}

func TestObjectsAreNoLargerThanTokensCanTell(t *testing.T) {
	require.Equal(t, 1<<31-1, codec.Limit(codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: math.MaxInt})))
	require.Equal(t, codec.DefaultMaxObjectBytes, codec.Limit(codec.New[*corev1.Pod](codec.Options{})))
}

// A map may contain another map of its type; each gets its own entries.
func TestMapsInMaps(t *testing.T) {
	type tree map[string]*struct {
		Name     string          `json:"name"`
		Children map[string]tree `json:"children"`
		Sizes    map[int]float64 `json:"sizes"`
	}
	type object struct {
		Tree tree `json:"tree"`
	}
	document := `{"tree":{"a":{"name":"1","children":{"x":{"b":{"name":"2","children":{"y":{"c":{"name":"3","sizes":{"1":1,"2":2}}}},"sizes":{"4":4}}}},"sizes":{"7":7}},"d":null,"e":{}}}`
	sameAsReference(t, []byte(document), reflect.TypeFor[object]())
	sameAsReference(t, []byte(`{"tree":{"a":{"name":"1"},"a":{"sizes":{"1":1}}}}`), reflect.TypeFor[object]())
	_, err := codec.New[*small](codec.Options{}).DecodeObject(context.Background(), strings.NewReader(`{"metadata":{"name":"a","labels":{"x":"y","z":1}}}`), asJSON, api.Resource{})
	require.ErrorContains(t, err, "metadata.labels.*: a number does not fit string")
}
