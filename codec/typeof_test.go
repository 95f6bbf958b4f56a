package codec_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestATypeThatIsKnownAtRunTime decodes as an interface what another codec decodes as a type.
func TestATypeThatIsKnownAtRunTime(t *testing.T) {
	pod := reflect.TypeFor[*corev1.Pod]()
	for _, media := range []string{codec.MediaTypeJSON, codec.MediaTypeProtobuf} {
		body := string(listOf(media, managedPod(1), newPod(2)))
		want, _, err := collect(codec.New[*corev1.Pod](codec.Options{}), body, media, pods, api.Options[*corev1.Pod]{})
		require.NoError(t, err)
		got, _, err := collect(codec.NewOf[api.Object](pod, codec.Options{}), body, media, pods, api.Options[api.Object]{})
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		k := codec.NewPackerOf[api.Object](pod, codec.Options{})
		packed, _, err := collect(k.Codec(nil), body, media, pods, api.Options[*codec.Packed]{})
		require.NoError(t, err)
		object := must.Get(k.Unpack(packed[0]))(t)
		require.IsType(t, want[0], object)
		requireSame(t, want[0], object.(*corev1.Pod))
	}
}

func TestATypeThatDoesNotImplementT(t *testing.T) {
	wrong := reflect.TypeFor[*struct{ A int }]()
	const message = "codec: *struct { A int } does not implement api.Object"
	require.PanicsWithValue(t, message, func() { codec.NewOf[api.Object](wrong, codec.Options{}) })
	require.PanicsWithValue(t, message, func() { codec.NewPackerOf[api.Object](wrong, codec.Options{}) })
}
