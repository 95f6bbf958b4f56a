// Package clientgo drives client-go in the bench.
package clientgo

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/bench/subject"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Library is client-go with its defaults. The informers have the index by namespace that a factory adds, except where a
// row measures the smallest memory. The environment variable KUBE_FEATURE_WatchListClient=false makes it list instead
// of a WatchList.
func Library() subject.Library {
	return subject.Library{Informer: newInformer, Scoped: newScoped, Shared: newShared, Queue: newQueue, Cache: newCache}
}

func newInformer(s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	shared, err := informerOf(s)
	if err != nil {
		return nil, err
	}
	if s.Strip {
		err = shared.SetTransform(func(o any) (any, error) {
			subject.Strip(o.(metav1.Object))
			return o, nil
		})
	}
	if err != nil {
		return nil, err
	}
	i := informer{shared}
	return i, i.Handle(h, s.Coalesce)
}

func informerOf(s subject.Spec) (cache.SharedIndexInformer, error) {
	config := configOf(s)
	switch s.Form {
	case subject.Full:
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		if s.Strip {
			return coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}), nil
		}
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
	case subject.Metadata:
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		if s.Strip {
			return metadatainformer.NewFilteredMetadataInformer(client, pods, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer(), nil
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	case subject.Unstructured:
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		if s.Strip {
			return dynamicinformer.NewFilteredDynamicInformer(client, pods, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer(), nil
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	default:
		return nil, subject.ErrUnsupported
	}
}

func configOf(s subject.Spec) *rest.Config {
	c := &rest.Config{Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}}
	switch s.Wire {
	case subject.JSON:
		c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	case subject.Protobuf:
		c.ContentType = "application/vnd.kubernetes.protobuf"
		c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return c
}

// informer is a shared informer with the methods that the bench needs.
type informer struct{ cache.SharedIndexInformer }

// Run receives until ctx ends.
func (i informer) Run(ctx context.Context) error {
	i.RunWithContext(ctx)
	return nil
}

// Len is the number of objects in the cache.
func (i informer) Len() int { return len(i.GetIndexer().ListKeys()) }

// Handle adds a handler. client-go has no coalescing handlers.
func (i informer) Handle(h subject.Hooks, coalesce bool) error {
	if coalesce {
		return subject.ErrUnsupported
	}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { h.Added() },
		UpdateFunc: func(old, new any) { h.Updated(old.(subject.Versioned), new.(subject.Versioned)) },
	})
	return err
}
