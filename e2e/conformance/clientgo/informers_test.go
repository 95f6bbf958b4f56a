package clientgo_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestInformers reads each type with three informers: typed, dynamic, and metadata only.
func TestInformers(t *testing.T) {
	t.Parallel()
	objects := dynamic.NewForConfigOrDie(server.Config)
	ctx := t.Context()
	typed := informers.NewSharedInformerFactory(client, 0)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	partial := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(server.Config), 0)
	all := allSamples(t)
	stores := map[string][]cache.Store{}
	for _, s := range all {
		require.NoError(t, s.missing)
		r := s.mapping.Resource
		if scheme.Scheme.IsVersionRegistered(r.GroupVersion()) {
			informer := must.Get(typed.ForResource(r))(t)
			stores[s.label()] = append(stores[s.label()], informer.Informer().GetStore())
		}
		stores[s.label()] = append(stores[s.label()], untyped.ForResource(r).Informer().GetStore(), partial.ForResource(r).Informer().GetStore())
	}
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	partial.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	untyped.WaitForCacheSync(ctx.Done())
	partial.WaitForCacheSync(ctx.Done())
	for _, s := range all {
		created := must.Get(objects.Resource(s.mapping.Resource).Namespace(s.GetNamespace()).Create(ctx, s.Unstructured, metav1.CreateOptions{}))(t)
		s.SetUID(created.GetUID())
	}
	for _, s := range all {
		key := s.GetName()
		if s.namespaced() {
			key = s.GetNamespace() + "/" + key
		}
		for i, store := range stores[s.label()] {
			harness.Wait(t, fmt.Sprintf("%s in store %d", s.label(), i), func() error {
				o, found, err := store.GetByKey(key)
				if err != nil || !found {
					return fmt.Errorf("found %v, %w", found, err)
				}
				accessor, err := meta.Accessor(o.(runtime.Object))
				if err == nil && accessor.GetUID() != s.GetUID() {
					return fmt.Errorf("its UID is %s", accessor.GetUID())
				}
				return err
			})
		}
	}
}
