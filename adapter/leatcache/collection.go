package leatcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	leat "github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/referenced"
)

// collection has the objects of one kind in one form, in one or more scopes. It implements Informer of
// controller-runtime.
type collection struct {
	key      collectionKey
	resource api.Resource
	scopes   []*scope        // ordered by namespace
	removed  context.Context // ends when the informer is removed
	remove   context.CancelFunc
	synced   func() <-chan struct{}

	ran       atomic.Bool // the informers were started
	cache     *Cache
	referrers []referrer // of Options.Referenced

	// start runs a function on a goroutine of the cache, and waiting are the functions that it will run. start is nil
	// before the cache starts. The mutex of the cache guards both.
	start   func(func(context.Context))
	waiting []func(context.Context)

	mu     sync.Mutex // guards the field below
	fields map[string]*fieldIndex
}

var _ ctrlcache.Informer = (*collection)(nil)

// scope is the part of a collection that one informer has.
type scope struct {
	namespace   string // "" for all namespaces without a scope of their own
	confined    bool   // all objects are in namespace
	share       bool   // reads return the cached objects
	informer    *informer.Informer[client.Object]
	referenced  *referenced.Set[client.Object]          // nil unless only referenced objects are cached
	client      *apiclient.PartialClient[client.Object] // of referenced
	byNamespace *leat.Index[client.Object, string]      // nil if keys are cheaper
}

func newCollection(c *Cache, key collectionKey, r api.Resource) *collection {
	of := &collection{key: key, resource: r, cache: c, fields: map[string]*fieldIndex{}}
	of.removed, of.remove = context.WithCancel(context.Background())
	var source func(namespace string) api.ListerWatcher[client.Object]
	if mask := c.masks[key]; mask != nil {
		masked := apiclient.NewMasked[client.Object](c.client, r, "", mask)
		source = func(namespace string) api.ListerWatcher[client.Object] { return masked.In(namespace) }
	} else {
		whole := apiclient.NewPartialOf[client.Object](c.client, r, "", key.object)
		source = func(namespace string) api.ListerWatcher[client.Object] { return whole.In(namespace) }
	}
	configs := c.scopesOf(key.gvk, r.Namespaced)
	for _, namespace := range slices.Sorted(maps.Keys(configs)) {
		of.scopes = append(of.scopes, newScope(of, source, namespace, configs[namespace]))
	}
	of.synced = sync.OnceValue(func() <-chan struct{} {
		each := make([]<-chan struct{}, len(of.scopes))
		for i, s := range of.scopes {
			each[i] = s.informer.Synced()
		}
		return of.all(each, nil)
	})
	return of
}

func newScope(of *collection, source func(string) api.ListerWatcher[client.Object], namespace string, config ctrlcache.Config) *scope {
	s := &scope{namespace: namespace, confined: namespace != ""}
	s.share = config.UnsafeDisableDeepCopy != nil && *config.UnsafeDisableDeepCopy
	in := namespace
	if config.FieldSelector != nil && in == "" && of.resource.Namespaced {
		in, _ = config.FieldSelector.RequiresExactMatch("metadata.namespace") // a user may only list there
	}
	o := of.cache.informerOptions(of.key, config)
	if of.onlyReferenced() {
		o.Hold = nil
		s.client = partialOf(source(in))
		s.referenced = referenced.New(s.client, referenced.Options[client.Object]{Options: o})
		s.informer = s.referenced.Informer
	} else {
		s.informer = informer.New(source(in), o)
	}
	if o.Hold == nil && !s.confined && of.resource.Namespaced {
		s.byNamespace = informer.AddIndex(s.informer, leat.ByNamespace[client.Object])
	}
	return s
}

// informerOptions returns the options of the informer of a scope.
func (c *Cache) informerOptions(key collectionKey, config ctrlcache.Config) informer.Options[client.Object] {
	o := informer.Options[client.Object]{
		Memory: reflector.Memory{KeepManagedFields: !c.own.DropManagedFields}, Hold: c.own.Hold, Logger: c.own.Logger,
		Handling: informer.Handling{ResyncPeriod: resyncPeriod(config.SyncPeriod), CrashOnPanic: true},
	}
	if config.LabelSelector != nil {
		o.Selector.Labels = config.LabelSelector.String()
	}
	if config.FieldSelector != nil {
		o.Selector.Fields = config.FieldSelector.String()
	}
	if config.Transform != nil {
		o.Transform = transform(config.Transform, c.masks[key])
	}
	report := func(error) {}
	if c.own.Logger == nil {
		report = func(err error) { logger.Error(err, "list or watch failed", "kind", key.gvk.String()) }
		o.OnUndecodable = func(e *api.UndecodableError) error {
			logger.Error(e.Err, "object not cached", "kind", key.gvk.String(), "object", e.Key.String())
			return nil
		}
	}
	if handle := c.o.DefaultWatchErrorHandler; handle != nil {
		// The handler reads the name of the reflector. This one is never run.
		r := cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, nil, cache.ReflectorOptions{
			Name: "leatcache", TypeDescription: key.gvk.String(),
		})
		report = func(err error) { handle(context.Background(), r, err) }
	}
	o.OnError = report
	return o
}

// transform calls f, whose result must be of the same type. f may have removed the mark of a masked object with its
// managedFields.
func transform(f cache.TransformFunc, mask *codec.Mask) func(client.Object) (client.Object, error) {
	return func(object client.Object) (client.Object, error) {
		changed, err := f(object)
		if err != nil {
			return object, err
		}
		result, ok := changed.(client.Object)
		if !ok || fmt.Sprintf("%T", result) != fmt.Sprintf("%T", object) {
			return object, fmt.Errorf("leatcache: the transform returned a %T for a %T", changed, object)
		}
		if mask != nil {
			mask.Mark(result)
		}
		return result, nil
	}
}

// wait waits for the first list of each scope.
func (of *collection) wait(ctx context.Context) error {
	for _, s := range of.scopes {
		if s.hasSynced() {
			continue
		}
		select {
		case <-s.informer.Synced():
		case <-ctx.Done():
			return errTimeout(of.key)
		case <-s.informer.Stopped():
			return of.errStopped()
		case <-of.removed.Done():
			return of.errStopped()
		}
	}
	return nil
}

func (of *collection) errStopped() error {
	return fmt.Errorf("leatcache: the informer of %s has ended", of.key.gvk)
}

func (s *scope) hasSynced() bool { return isClosed(s.informer.Synced()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// all returns a channel that is closed when all of each are closed, unless end is closed or the informers end before.
func (of *collection) all(each []<-chan struct{}, end <-chan struct{}) <-chan struct{} {
	if len(each) == 1 {
		return each[0]
	}
	done := make(chan struct{})
	if !slices.ContainsFunc(each, func(c <-chan struct{}) bool { return !isClosed(c) }) {
		close(done)
		return done
	}
	of.whenRunning(func(ctx context.Context) {
		for _, c := range each {
			select {
			case <-c:
			case <-end:
				return
			case <-ctx.Done():
				return
			}
		}
		close(done)
	})
	return done
}

// whenRunning runs f on a goroutine that Start of the cache waits for: at once, or when the cache starts. It does not
// run f if the cache has ended. f gets a context that ends with the informers.
func (of *collection) whenRunning(f func(context.Context)) {
	of.cache.mu.Lock()
	defer of.cache.mu.Unlock()
	switch {
	case of.cache.ended:
	case of.start != nil:
		of.start(f)
	default:
		of.waiting = append(of.waiting, f)
	}
}

// HasSynced reports whether the cache holds the first list.
func (of *collection) HasSynced() bool {
	return !slices.ContainsFunc(of.scopes, func(s *scope) bool { return !s.hasSynced() })
}

// HasSyncedChecker returns the channel that is closed when HasSynced becomes true.
func (of *collection) HasSyncedChecker() cache.DoneChecker {
	return checker{"leatcache " + of.resource.String(), of.synced()}
}

// IsStopped reports whether the informer has ended: it was removed, or the cache ends.
func (of *collection) IsStopped() bool {
	if !of.ran.Load() {
		return of.removed.Err() != nil
	}
	return !slices.ContainsFunc(of.scopes, func(s *scope) bool { return !isClosed(s.informer.Stopped()) })
}

// AddIndexers refuses indexes of client-go, because an Informer of controller-runtime has no method that reads them.
func (of *collection) AddIndexers(cache.Indexers) error {
	return errors.New("leatcache: AddIndexers is not supported, because nothing could read the indexes; use IndexField of the cache")
}

// checker is a DoneChecker.
type checker struct {
	name string
	done <-chan struct{}
}

// Name returns the name of what is waited for.
func (c checker) Name() string { return c.name }

// Done returns the channel.
func (c checker) Done() <-chan struct{} { return c.done }

// AddEventHandler adds a handler with the resync period of the informer.
func (of *collection) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return of.subscribe(h, 0)
}

// AddEventHandlerWithResyncPeriod adds a handler with its own resync period; 0 means no resyncs.
func (of *collection) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	if period <= 0 {
		period = -1
	}
	return of.subscribe(h, period)
}

// AddEventHandlerWithOptions adds a handler. The Logger of the options is not used.
func (of *collection) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if o.ResyncPeriod == nil {
		return of.AddEventHandler(h)
	}
	return of.AddEventHandlerWithResyncPeriod(h, *o.ResyncPeriod)
}

func (of *collection) subscribe(h cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	if of.removed.Err() != nil {
		return nil, of.errStopped()
	}
	r := &registration{of: of}
	for _, s := range of.scopes {
		one, err := s.informer.Subscribe(func(c api.Change[client.Object]) { deliver(h, c) }, informer.HandlerOptions{
			Name: fmt.Sprintf("%T", h), ResyncPeriod: period,
		})
		if err != nil {
			r.remove()
			return nil, fmt.Errorf("leatcache: %w", err)
		}
		r.each = append(r.each, one)
	}
	r.synced = sync.OnceValue(func() <-chan struct{} {
		each, ended := make([]<-chan struct{}, len(r.each)), make([]<-chan struct{}, len(r.each))
		for i, one := range r.each {
			each[i], ended[i] = one.Synced(), one.Done()
		}
		return of.all(each, ended[0])
	})
	return r, nil
}

// deliver calls the handler for a change.
func deliver(h cache.ResourceEventHandler, c api.Change[client.Object]) {
	switch {
	case c.Type == api.Added:
		h.OnAdd(c.Object, c.InitialList)
	case c.Type == api.Updated:
		h.OnUpdate(c.Old, c.Object)
	case c.FinalStateUnknown:
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: api.FormatKey(api.KeyOf(c.Object)), Obj: c.Object})
	default:
		h.OnDelete(c.Object)
	}
}

// RemoveEventHandler removes a handler. Removing it again has no effect.
func (of *collection) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.of != of {
		return fmt.Errorf("leatcache: the registration is not one of the informer of %s", of.key.gvk)
	}
	r.remove()
	return nil
}

// registration is a handler in all scopes of a collection.
type registration struct {
	of     *collection
	each   []informer.Registration
	synced func() <-chan struct{}
}

func (r *registration) remove() {
	for _, one := range r.each {
		one.Remove()
	}
}

// HasSynced reports whether the handler has processed the first list.
func (r *registration) HasSynced() bool {
	return !slices.ContainsFunc(r.each, func(one informer.Registration) bool { return !isClosed(one.Synced()) })
}

// HasSyncedChecker returns the channel that is closed when HasSynced becomes true.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	names := make([]string, len(r.each))
	for i, one := range r.each {
		names[i] = one.Name()
	}
	return checker{"leatcache " + r.of.resource.String() + " " + strings.Join(slices.Compact(names), ", "), r.synced()}
}
