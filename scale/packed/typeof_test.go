package packed_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver"
)

// TestATypeThatIsKnownAtRunTime runs informers of api.Object whose objects are pods, whole and packed, of one
// namespace, over HTTP and over WebSocket.
func TestATypeThatIsKnownAtRunTime(t *testing.T) {
	overHTTP := func(p *apiclient.PartialOf[api.Object]) api.ListerWatcher[api.Object] { return p }
	overWebSocket := func(p *apiclient.PartialOf[api.Object]) api.ListerWatcher[api.Object] { return websocket.Watch(p) }
	for _, source := range []func(*apiclient.PartialOf[api.Object]) api.ListerWatcher[api.Object]{overHTTP, overWebSocket} {
		for _, hold := range []informer.Holding[api.Object]{nil, packed.Bytes[api.Object](), packed.Coded[api.Object](flatten)} {
			testTypeKnownAtRunTime(t, source, hold)
		}
	}
}

func testTypeKnownAtRunTime(
	t *testing.T, source func(*apiclient.PartialOf[api.Object]) api.ListerWatcher[api.Object], hold informer.Holding[api.Object],
) {
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		for _, namespace := range []string{"default", "other"} {
			pod := named("web", "image")
			pod.Namespace = namespace
			f.Create(pods, pod)
		}
		all := apiclient.NewPartialOf[api.Object](f.Client, pods, "", reflect.TypeFor[*corev1.Pod]())
		i := informer.New(source(all.In("default")), informer.Options[api.Object]{Hold: hold})
		f.Start(i.Run)
		synctest.Wait()
		require.Equal(t, []api.Key{{Namespace: "default", Name: "web"}}, slices.Collect(i.Snapshot().Keys()))
		object, found := i.Cache().Get(api.Key{Namespace: "default", Name: "web"})
		require.True(t, found)
		require.Equal(t, "image", object.(*corev1.Pod).Spec.Containers[0].Image)
	})
}

// TestNamespacesShareAPacker: what decodes and encodes a type takes 120 KB, so the informers of many namespaces share
// it.
func TestNamespacesShareAPacker(t *testing.T) {
	client, err := apiclient.New(apiclient.Config{Host: "http://localhost"})
	require.NoError(t, err)
	all := apiclient.NewPartialOf[api.Object](client, pods, "", reflect.TypeFor[*corev1.Pod]())
	for name, source := range map[string]func(namespace string) api.ListerWatcher[api.Object]{
		"HTTP":      func(namespace string) api.ListerWatcher[api.Object] { return all.In(namespace) },
		"WebSocket": func(namespace string) api.ListerWatcher[api.Object] { return websocket.Watch(all.In(namespace)) },
	} {
		informers := make([]*informer.Informer[api.Object], 100)
		var before, after runtime.MemStats
		for i := range informers {
			if i == 1 { // the first one makes the packer
				runtime.ReadMemStats(&before)
			}
			informers[i] = informer.New(source(fmt.Sprint("n", i)), informer.Options[api.Object]{Hold: packed.Bytes[api.Object]()})
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/uint64(len(informers)-1), uint64(30<<10), name)
	}
}
