package controllerruntime

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/subject"
)

// many is a cache with an informer of each custom resource.
type many struct {
	cache.Cache
	kinds []schema.GroupVersionKind
}

func newMany(s subject.Spec) (subject.Many, error) {
	config := &rest.Config{
		Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA},
		QPS: -1, // ctrl.GetConfig sets no limit either
	}
	version := schema.GroupVersion{Group: load.CustomGroup, Version: load.CustomVersion}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	m := &many{}
	for i := range s.Resources {
		kind := version.WithKind(load.CustomKind(i))
		mapper.AddSpecific(kind, version.WithResource(load.CustomPlural(i)), version.WithResource(load.CustomPlural(i)), meta.RESTScopeNamespace)
		m.kinds = append(m.kinds, kind)
	}
	var err error
	m.Cache, err = cache.New(config, cache.Options{Mapper: mapper, Scheme: runtime.NewScheme()})
	return m, err
}

// Run runs the cache until ctx ends.
func (m *many) Run(ctx context.Context) error { return m.Start(ctx) }

// Synced asks for an informer of each resource, as a manager does for its controllers, and waits for all of them.
func (m *many) Synced(ctx context.Context) error {
	for _, kind := range m.kinds {
		var object unstructured.Unstructured
		object.SetGroupVersionKind(kind)
		if _, err := m.GetInformer(ctx, &object, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	if !m.WaitForCacheSync(ctx) {
		return errors.New("controllerruntime: the cache did not sync")
	}
	return nil
}

// Len is the number of objects in all caches.
func (m *many) Len() (n int) {
	for _, kind := range m.kinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.List(context.Background(), &list); err != nil {
			return 0
		}
		n += len(list.Items)
	}
	return n
}
