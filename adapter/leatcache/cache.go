package leatcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
)

// Cache is a cache.Cache of controller-runtime. It has a collection for each kind that is read or watched, in each form
// that it is read in: typed, unstructured, or only metadata.
type Cache struct {
	own      Options
	o        cache.Options
	byObject map[schema.GroupVersionKind]cache.ByObject
	masks    map[collectionKey]*codec.Mask
	// references has the kinds of Options.Referenced.
	references map[schema.GroupVersionKind]References
	client     *apiclient.Client
	started    chan struct{} // closed by Start
	running    sync.WaitGroup

	mu          sync.Mutex // guards the fields below
	collections map[collectionKey]*collection
	ctx         context.Context // of Start; nil before
	ended       bool            // Start waits for the informers, so no informer may start any more
	listing     int             // collections whose trimAfter runs
	trimmed     uint64          // allocatedBytes at the start, or when the cache last returned memory
}

var _ cache.Cache = (*Cache)(nil)

// collectionKey identifies a collection: its kind, and the Go type of its objects.
type collectionKey struct {
	gvk    schema.GroupVersionKind
	object reflect.Type
}

// Start runs the informers of the cache, present and future ones, until ctx ends. It returns when they have ended. It
// can be called once.
func (c *Cache) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.ctx != nil {
		c.mu.Unlock()
		return errors.New("leatcache: informer already started")
	}
	c.ctx, c.trimmed = ctx, allocatedBytes()
	for _, of := range c.collections {
		c.run(of)
	}
	close(c.started)
	c.mu.Unlock()

	<-ctx.Done()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

// run starts the informers of a collection. The lock is held.
func (c *Cache) run(of *collection) {
	if c.ended {
		return
	}
	of.ran.Store(true)
	ctx, stop := context.WithCancel(c.ctx)
	context.AfterFunc(of.removed, stop)
	of.start = func(f func(context.Context)) { c.running.Go(func() { f(ctx) }) }
	for _, f := range of.waiting {
		of.start(f)
	}
	of.waiting = nil
	if c.own.Hold != nil {
		c.listing++
		c.running.Go(func() { c.trimAfter(ctx, of) })
	}
	for _, s := range of.scopes {
		c.running.Go(func() {
			defer stop()
			_ = s.informer.Run(ctx) // it fails only if OnUndecodable does
		})
	}
}

// NeedLeaderElection returns false: caches run on all replicas.
func (c *Cache) NeedLeaderElection() bool { return false }

// WaitForCacheSync waits until the cache is started and all its present informers have the first list. It returns false
// if ctx or the cache ends before.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	c.mu.Lock()
	all := make([]*collection, 0, len(c.collections))
	for _, of := range c.collections {
		all = append(all, of)
	}
	c.mu.Unlock()
	for _, of := range all {
		if err := of.wait(ctx); err != nil && of.removed.Err() == nil {
			return false
		}
	}
	return true
}

// GetInformer returns the informer of the kind and the form of object, which its first use makes. In a cache that is
// started, it waits for the first list unless BlockUntilSynced(false) is given.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	key, err := c.keyOf(object)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, key, opts)
}

// GetInformerForKind is GetInformer for the type that the scheme has for a kind.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	object, err := c.o.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, collectionKey{gvk, reflect.TypeOf(object)}, opts)
}

func (c *Cache) informer(ctx context.Context, key collectionKey, opts []cache.InformerGetOption) (cache.Informer, error) {
	var o cache.InformerGetOptions
	for _, set := range opts {
		set(&o)
	}
	of, started, err := c.collection(key)
	if err != nil {
		return nil, err
	}
	if started && (o.BlockUntilSynced == nil || *o.BlockUntilSynced) {
		if err := of.wait(ctx); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// RemoveInformer stops the informer of the kind and the form of object and forgets its objects. The next use of the
// kind makes a new informer, without the handlers and indexes of the old one.
func (c *Cache) RemoveInformer(_ context.Context, object client.Object) error {
	key, err := c.keyOf(object)
	if err != nil {
		return err
	}
	if err := c.checkRemovable(key); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.collections[key]; of != nil {
		of.remove()
		delete(c.collections, key)
	}
	return nil
}

// IndexField adds an index for reads with client.MatchingFields, before or after Start. It does not wait for the first
// list.
func (c *Cache) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	key, err := c.keyOf(object)
	if err != nil {
		return err
	}
	of, _, err := c.collection(key)
	switch {
	case err != nil:
		return err
	case of.onlyReferenced():
		return fmt.Errorf("leatcache: index %s by %s: only the referenced objects are cached, and lists of them are refused", key.gvk.Kind, field)
	}
	return of.indexField(field, values)
}

// Get reads an object from the cache. If the kind is not cached yet, it waits for the first list.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	k, err := c.keyOf(out)
	if err != nil {
		return err
	}
	of, err := c.readable(ctx, k)
	if err != nil {
		return err
	}
	return of.get(ctx, key, out, opts)
}

// List reads objects from the cache. If the kind is not cached yet, it waits for the first list.
func (c *Cache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	key, err := c.keyOfItems(out)
	if err != nil {
		return err
	}
	of, err := c.readable(ctx, key)
	if err != nil {
		return err
	}
	return of.list(out, opts)
}

// readable returns a collection that has its first list.
func (c *Cache) readable(ctx context.Context, key collectionKey) (*collection, error) {
	if c.o.ReaderFailOnMissingInformer {
		c.mu.Lock()
		of := c.collections[key]
		c.mu.Unlock()
		if of == nil {
			return nil, &cache.ErrResourceNotCached{GVK: key.gvk}
		}
	}
	of, started, err := c.collection(key)
	if err != nil {
		return nil, err
	}
	if !started {
		return nil, &cache.ErrCacheNotStarted{}
	}
	return of, of.wait(ctx)
}

// collection returns a collection, which its first use makes. It reports whether the cache is started.
func (c *Cache) collection(key collectionKey) (_ *collection, started bool, err error) {
	c.mu.Lock()
	of, started := c.collections[key], c.ctx != nil
	c.mu.Unlock()
	if of != nil {
		return of, started, nil
	}
	made, err := c.newCollection(key) // it may send requests
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.collections[key]; of != nil {
		return of, c.ctx != nil, nil
	}
	if err := made.follow(); err != nil {
		return nil, false, err
	}
	c.collections[key] = made
	if c.ctx != nil {
		if c.ended {
			made.remove()
		}
		c.run(made)
	}
	return made, c.ctx != nil, nil
}

// newCollection makes a collection whose informers do not run.
func (c *Cache) newCollection(key collectionKey) (*collection, error) {
	mapping, err := c.o.Mapper.RESTMapping(key.gvk.GroupKind(), key.gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("leatcache: find the resource of %s: %w", key.gvk, err)
	}
	r := api.Resource{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Kind: key.gvk.Kind, Plural: mapping.Resource.Resource,
		Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	if r.Plural == "" || r.Version == "" {
		return nil, fmt.Errorf("leatcache: the RESTMapper has no resource for %s", key.gvk)
	}
	if !key.object.Implements(reflect.TypeFor[client.Object]()) {
		return nil, fmt.Errorf("leatcache: %s is not a client.Object", key.object)
	}
	of := newCollection(c, key, r)
	return of, c.findReferrers(of)
}

// keyOf returns the key of the collection that has objects like object.
func (c *Cache) keyOf(object client.Object) (collectionKey, error) {
	gvk, err := apiutil.GVKForObject(object, c.o.Scheme)
	if err != nil {
		return collectionKey{}, err
	}
	return c.keyOfForm(gvk, object)
}

// keyOfItems returns the key of the collection that has the items of a list.
func (c *Cache) keyOfItems(list client.ObjectList) (collectionKey, error) {
	gvk, err := apiutil.GVKForObject(list, c.o.Scheme)
	if err != nil {
		return collectionKey{}, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return c.keyOfForm(gvk, list)
}

func (c *Cache) keyOfForm(gvk schema.GroupVersionKind, of runtime.Object) (collectionKey, error) {
	switch of.(type) {
	case runtime.Unstructured:
		return collectionKey{gvk, reflect.TypeFor[*unstructured.Unstructured]()}, nil
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return collectionKey{gvk, reflect.TypeFor[*metav1.PartialObjectMetadata]()}, nil
	}
	object, err := c.o.Scheme.New(gvk)
	if err != nil {
		return collectionKey{}, err
	}
	return collectionKey{gvk, reflect.TypeOf(object)}, nil
}

// errTimeout is the error of a wait for the first list that its context ended.
func errTimeout(key collectionKey) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("leatcache: the informer of %s has no list yet", key.gvk), 0)
}
