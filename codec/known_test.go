package codec_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// knows answers like DeltaFIFO, by a look-up that does not allocate.
func knows[T api.Object](objects ...T) func(namespace, name []byte) (T, bool) {
	known := map[string]T{}
	for _, o := range objects {
		known[o.GetNamespace()+"/"+o.GetName()] = o
	}
	var key []byte
	return func(namespace, name []byte) (T, bool) {
		key = append(append(append(key[:0], namespace...), '/'), name...)
		o, ok := known[string(key)]
		return o, ok
	}
}

func TestKnownObjectsAreReused(t *testing.T) {
	changed := newPod(2)
	changed.ResourceVersion = "1"
	recreated := newPod(3)
	recreated.UID = "another"
	same := newPod(1)
	for _, media := range []string{asJSON, asProtobuf} {
		items, meta, err := collect(podCodec, string(podList(5, media)), media, pods, podOptions{Known: knows(same, changed, recreated)})
		require.NoError(t, err)
		require.Equal(t, "4242", meta.ResourceVersion)
		require.Len(t, items, 5)
		require.Same(t, same, items[1])
		for _, i := range []int{0, 2, 3, 4} {
			requireSame(t, newPod(i), items[i])
		}
	}
}

// An object without a UID or a version is never known, and neither is one with repeated names in its metadata.
func TestUncertainObjectsAreNotReused(t *testing.T) {
	for _, item := range []string{
		`{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","uid":"u"}}`,
		`{"metadata":{"name":"a","resourceVersion":"1"}}`,
		`{"metadata":{"name":"a","uid":"u","resourceVersion":"1","resourceVersion":"1"}}`,
		`{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"metadata":{"labels":{}}}`,
		`{"metadata":{"labels":{}},"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}`,
	} {
		known := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		if bytes.Contains([]byte(item), []byte(`"uid"`)) {
			known.UID = "u"
		}
		if bytes.Contains([]byte(item), []byte(`"resourceVersion"`)) {
			known.ResourceVersion = "1"
		}
		items, _, err := collect(podCodec, `{"kind":"PodList","items":[`+item+`]}`, asJSON, pods, podOptions{Known: knows(known)})
		require.NoError(t, err)
		require.NotSame(t, known, items[0], item)
	}
}

func TestKnownObjectsAreReusedInWatch(t *testing.T) {
	known := newPod(1)
	for _, media := range []string{asJSON, asProtobuf} {
		all, _ := events(t, podCodec, streamOf(media, "ADDED", newPod(1), "DELETED", newPod(1)), media, pods, podOptions{Known: knows(known)})
		require.Same(t, known, all[0].Object)
		require.Equal(t, "100001", all[0].ResourceVersion)
		require.Equal(t, watch.Deleted, all[1].Type)
		require.NotSame(t, known, all[1].Object, "the last state is the server's to tell")
	}
}

// A relist of known objects needs only a few allocations for the whole list.
func TestRelistOfKnownObjectsDoesNotAllocate(t *testing.T) {
	const n = 400
	run := func(t *testing.T, relist func()) {
		relist()
		allocs := testing.AllocsPerRun(2, relist)
		require.Less(t, allocs/n, 0.1, "allocations an object")
		require.Less(t, allocatedBytes(relist)/n, uint64(256), "bytes an object, the window's included")
	}
	objects := make([]*corev1.Pod, n)
	for i := range objects {
		objects[i] = newPod(i)
	}
	for _, media := range []string{asJSON, asProtobuf} {
		body := podList(n, media)
		t.Run("type=pod/media="+media, func(t *testing.T) {
			known := knows(objects...)
			run(t, func() { relist(t, podCodec, body, media, known) })
		})
	}
	body := podList(n, asJSON)
	t.Run("type=small", func(t *testing.T) {
		items, _, err := collect(smallCodec, string(body), asJSON, pods, api.Options[*small]{})
		require.NoError(t, err)
		known := knows(items...)
		run(t, func() { relist(t, smallCodec, body, asJSON, known) })
	})
	t.Run("type=metadata", func(t *testing.T) {
		items, _, err := collect(metadataCodec, string(body), asJSON, pods, api.Options[*metav1.PartialObjectMetadata]{})
		require.NoError(t, err)
		known := knows(items...)
		run(t, func() { relist(t, metadataCodec, body, asJSON, known) })
	})
	t.Run("type=unstructured", func(t *testing.T) {
		items, _, err := collect(unstructuredCodec, string(body), asJSON, pods, api.Options[*unstructured.Unstructured]{})
		require.NoError(t, err)
		known := knows(items...)
		run(t, func() { relist(t, unstructuredCodec, body, asJSON, known) })
	})
}

func relist[T api.Object](t *testing.T, c *codec.Codec[T], body []byte, media string, known func(_, _ []byte) (T, bool)) {
	var last T
	o := api.Options[T]{DropManagedFields: true, Known: func(namespace, name []byte) (obj T, ok bool) {
		last, ok = known(namespace, name)
		return last, ok
	}}
	fresh := 0
	_, err := c.DecodeList(context.Background(), bytes.NewReader(body), media, pods, o, func(item T) error {
		if any(item) != any(last) {
			fresh++
		}
		return nil
	})
	if err != nil || fresh > 0 {
		t.Fatal(fmt.Sprint(fresh, " objects were decoded again, error ", err))
	}
}
