package codec_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// TestUnwantedObjectsAreSkipped keeps one of five objects. The others are not decoded: they may be undecodable, and the
// caller's Known does not get them.
func TestUnwantedObjectsAreSkipped(t *testing.T) {
	wanted := newPod(1)
	keep := func(namespace, uid []byte) bool {
		return string(namespace) == wanted.Namespace && string(uid) == string(wanted.UID)
	}
	for _, media := range []string{asJSON, asProtobuf} {
		o := podOptions{Keep: keep, Known: func(_, name []byte) (*corev1.Pod, bool) {
			require.Equal(t, wanted.Name, string(name))
			return nil, false
		}}
		items, meta, err := collect(podCodec, string(podList(5, media)), media, pods, o)
		require.NoError(t, err)
		require.Equal(t, "4242", meta.ResourceVersion)
		require.Len(t, items, 1)
		requireSame(t, wanted, items[0])

		all, _ := events(t, podCodec, streamOf(media, "ADDED", newPod(0), "ADDED", newPod(1), "DELETED", newPod(2), "DELETED", newPod(1)), media, pods, o)
		require.Len(t, all, 2)
		require.Equal(t, watch.Deleted, all[1].Type)
		requireSame(t, wanted, all[1].Object)

		added := 0
		packed := codec.NewPacker[*corev1.Pod](codec.Options{}).Codec(func(p *codec.Packed, plain []byte) { added++; p.Keep(plain) })
		bytes, _, err := collect(packed, string(podList(5, media)), media, pods, api.Options[*codec.Packed]{Keep: keep})
		require.NoError(t, err)
		require.Len(t, bytes, 1)
		require.Equal(t, 1, added)
	}
}

// TestUnwantedObjectsNeedNotBeDecodable has one that cannot be decoded, and one whose metadata are repeated: the caller
// gets the second, because only the decoder knows what they are.
func TestUnwantedObjectsNeedNotBeDecodable(t *testing.T) {
	body := `{"kind":"PodList","items":[{"metadata":{"name":"a","uid":"u"},"spec":7},{"metadata":{"name":"b","uid":"v","uid":"u"}}]}`
	items, _, err := collect(podCodec, body, asJSON, pods, podOptions{Keep: func(_, uid []byte) bool { return !bytes.Equal(uid, []byte("u")) }})
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.EqualValues(t, "u", items[0].UID)
}

// TestSkippingDoesNotAllocate has a watch without a wanted object.
func TestSkippingDoesNotAllocate(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		body := podList(400, media)
		skip := func() {
			_, _, err := collect(podCodec, string(body), media, pods, podOptions{Keep: func(_, _ []byte) bool { return false }})
			require.NoError(t, err)
		}
		skip()
		require.Less(t, testing.AllocsPerRun(3, skip)/400, 0.1, "allocations an object")
	}
}
