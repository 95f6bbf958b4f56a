package packed_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/packed"
	"github.com/leatproject/leat/testserver"
)

// TestATypeThatIsKnownAtRunTime runs informers of api.Object whose objects are pods, whole and packed, of one
// namespace.
func TestATypeThatIsKnownAtRunTime(t *testing.T) {
	for _, hold := range []informer.Holding[api.Object]{nil, packed.Bytes[api.Object](), packed.Coded[api.Object](flatten)} {
		synctest.Test(t, func(t *testing.T) {
			server := testserver.New(testserver.Options{})
			for _, namespace := range []string{"default", "other"} {
				pod := named("web", "image")
				pod.Namespace = namespace
				_, err := server.Create(pods, pod)
				require.NoError(t, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = server.Run(ctx) })
			client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
			require.NoError(t, err)
			all := apiclient.NewPartialOf[api.Object](client, pods, "", reflect.TypeFor[*corev1.Pod]())
			i := informer.New(all.In("default"), informer.Options[api.Object]{Hold: hold})
			running.Go(func() { _ = i.Run(ctx) })
			synctest.Wait()
			require.Equal(t, []api.Key{{Namespace: "default", Name: "web"}}, slices.Collect(i.Snapshot().Keys()))
			object, found := i.Cache().Get(api.Key{Namespace: "default", Name: "web"})
			require.True(t, found)
			require.Equal(t, "image", object.(*corev1.Pod).Spec.Containers[0].Image)
			cancel()
			running.Wait()
		})
	}
}
