package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testkit"
)

func TestPreload(t *testing.T) {
	for name, hold := range map[string]bool{"decoded": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			run(t, func(k *testkit.Kit) {
				// The fake clientset has no pods, so pods can only come from leat.
				factory := informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), time.Minute, informers.WithTransform(func(obj any) (any, error) {
					obj.(*corev1.Pod).Spec.NodeName = "n"
					return obj, nil
				}))
				o := clientgo.Options[*corev1.Pod]{Indexers: cache.Indexers{"node": func(obj any) ([]string, error) {
					return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
				}}}
				if hold {
					o.Hold = packed.Bytes[*corev1.Pod]()
				}
				client := apiclient.NewTyped[*corev1.Pod](k.Client, pods, "")
				i := must.Get(clientgo.Preload(factory, client, o))(k)
				require.NotContains(k, o.Indexers, cache.NamespaceIndex, "the caller's map")
				generated := factory.Core().V1().Pods()
				require.Equal(k, i.GetIndexer(), generated.Informer().GetIndexer())
				var r recorder
				mustAdd(k.T, generated.Informer(), &r)
				lister := generated.Lister()
				k.Start(func(ctx context.Context) error {
					factory.StartWithContext(klog.NewContext(ctx, klog.Logger{}))
					factory.Shutdown()
					return nil
				})
				for _, synced := range factory.WaitForCacheSync(k.Context().Done()) {
					require.True(k, synced)
				}
				require.Equal(k, []string{"add a initial=true", "add b initial=true"}, r.take())

				web := must.Get(lister.Pods("default").List(labels.SelectorFromSet(labels.Set{"app": "web"})))(k)
				require.Len(k, web, 1)
				require.Equal(k, "n", web[0].Spec.NodeName, "the factory's transform")
				onNode := must.Get(i.GetIndexer().ByIndex("node", "n"))(k)
				require.Len(k, onNode, 2)
				k.Pass(time.Minute)
				require.Equal(k, []string{"resync a", "resync b"}, r.take(), "the factory's period")
			})
		})
	}
}

func TestPreloadComesFirst(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		factory.Core().V1().Pods().Informer()
		_, err := clientgo.Preload(factory, apiclient.NewTyped[*corev1.Pod](k.Client, pods, ""), clientgo.Options[*corev1.Pod]{})
		require.EqualError(k, err, "clientgo: the factory has an informer for *v1.Pod already; call Preload earlier")
	})
}

// TestPreloadRefusesAnInformerName: the name is for metrics that leat does not publish.
func TestPreloadRefusesAnInformerName(t *testing.T) {
	name := must.Get(cache.NewInformerName("test-preload"))(t)
	defer name.Release()
	run(t, func(k *testkit.Kit) {
		factory := informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithInformerName(name))
		_, err := clientgo.Preload(factory, apiclient.NewTyped[*corev1.Pod](k.Client, pods, ""), clientgo.Options[*corev1.Pod]{})
		require.ErrorContains(k, err, "clientgo: the factory has an InformerName")
	})
}
