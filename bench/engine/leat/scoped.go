package leat

import (
	"context"
	"net"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/scale/warmstart"
)

// scoped is one informer with a scope for each namespace.
type scoped struct {
	*scopes.Set[*unstructured.Unstructured]
}

func newScoped(s subject.Spec) (subject.Many, error) {
	client, err := apiclient.New(configOf(s))
	if err != nil {
		return nil, err
	}
	r := customOf(0)
	set := scopes.New(r, scopes.Options[*unstructured.Unstructured]{})
	for i := range s.Namespaces {
		source := apiclient.NewTyped[*unstructured.Unstructured](client, r, load.CustomNamespace(i))
		if err := set.Add(scopes.Scope[*unstructured.Unstructured]{Source: source}); err != nil {
			return nil, err
		}
	}
	return scoped{set}, nil
}

// Synced waits for every scope.
func (s scoped) Synced(ctx context.Context) error {
	select {
	case <-s.Set.Synced():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Len is the number of objects in the cache.
func (s scoped) Len() int { return s.Cache().Len() }

func customOf(i int) api.Resource {
	return api.Resource{Group: load.CustomGroup, Version: load.CustomVersion, Kind: load.CustomKind(i), Plural: load.CustomPlural(i), Namespaced: true}
}

// newKept returns an informer that keeps its collection in a file, unless the name is empty.
func newKept(s subject.Spec, h subject.Hooks, file string, received *atomic.Int64) (subject.Informer, error) {
	config := configOf(s)
	config.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return counted{c, received}, err
	}
	client, err := apiclient.New(config)
	if err != nil {
		return nil, err
	}
	switch s.Form {
	case subject.Full:
		return keep(apiclient.NewTyped[*corev1.Pod](client, pods, ""), s, h, file)
	case subject.Struct:
		return keep(apiclient.NewPartial[*subject.Pod](client, pods, ""), s, h, file)
	default:
		return nil, subject.ErrUnsupported
	}
}

func keep[T api.Object](source api.ListerWatcher[T], s subject.Spec, h subject.Hooks, file string) (subject.Informer, error) {
	if end := s.End(); end != 0 {
		source = shardedsource.New(source, hashrange.UID, hashrange.NewSet(hashrange.Range{To: end}), shardedsource.Options{})
	}
	if file == "" {
		return withHooks(source, s, h)
	}
	warm, err := warmstart.New(source, warmstart.Options{Path: file, Cluster: "bench"})
	if err != nil {
		return nil, err
	}
	inner, err := withHooks[T](warm, s, h)
	return closing{inner, warm.Close}, err
}

// closing is an informer whose file is closed at its end.
type closing struct {
	subject.Informer
	close func() error
}

// Run runs the informer and closes the file.
func (c closing) Run(ctx context.Context) error {
	if err := c.Informer.Run(ctx); err != nil {
		return err
	}
	return c.close()
}

// counted is a connection that counts the bytes that it reads.
type counted struct {
	net.Conn
	received *atomic.Int64
}

// Read counts the bytes.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
