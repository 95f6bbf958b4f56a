package clientgo

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/subject"
)

// scoped is an informer for each namespace. They share one client.
type scoped []cache.SharedIndexInformer

func newScoped(s subject.Spec) (subject.Many, error) {
	config := configOf(s)
	config.QPS = -1 // the default of five requests a second would take minutes
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := schema.GroupVersionResource{Group: load.CustomGroup, Version: load.CustomVersion, Resource: load.CustomPlural(0)}
	var all scoped
	for i := range s.Namespaces {
		all = append(all, dynamicinformer.NewFilteredDynamicInformer(client, r, load.CustomNamespace(i), 0, cache.Indexers{}, nil).Informer())
	}
	return all, nil
}

// Run runs the informers until ctx ends.
func (s scoped) Run(ctx context.Context) error {
	var active sync.WaitGroup
	for _, i := range s {
		active.Go(func() { i.RunWithContext(ctx) })
	}
	active.Wait()
	return nil
}

// Synced waits for every informer.
func (s scoped) Synced(ctx context.Context) error {
	for _, i := range s {
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return errors.New("clientgo: a cache did not sync")
		}
	}
	return nil
}

// Len is the number of objects in all caches.
func (s scoped) Len() (n int) {
	for _, i := range s {
		n += len(i.GetStore().ListKeys())
	}
	return n
}
