package leat

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/packed"
)

// many is the informers of custom resources. They share one client.
type many []*informer.Informer[*unstructured.Unstructured]

func newMany(s subject.Spec) (subject.Many, error) {
	client, err := apiclient.New(configOf(s))
	if err != nil {
		return nil, err
	}
	var o informer.Options[*unstructured.Unstructured]
	if s.Form == subject.Packed {
		o.Hold = packed.Bytes[*unstructured.Unstructured]()
	}
	var all many
	for i := range s.Resources {
		all = append(all, informer.New(apiclient.NewTyped[*unstructured.Unstructured](client, customOf(i), ""), o))
	}
	return all, nil
}

// Run runs the informers until ctx ends.
func (m many) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, i := range m {
		g.Go(func() error { return i.Run(ctx) })
	}
	return g.Wait()
}

// Synced waits for every informer.
func (m many) Synced(ctx context.Context) error {
	for _, i := range m {
		select {
		case <-i.Synced():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Len is the number of objects in all caches.
func (m many) Len() (n int) {
	for _, i := range m {
		n += i.Cache().Len()
	}
	return n
}
