package informers

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/testserver/internal/store"
)

// informer is the SharedIndexInformer of one resource. It never runs. Its handlers are called by Factory.Refresh.
type informer struct {
	cache.SharedIndexInformer // nil: the methods that nothing calls

	objects *objects

	mu       sync.Mutex // guards the fields below
	handlers []cache.ResourceEventHandler
	seen     map[string]*store.Record // what the handlers know
}

// synced is a registration whose handler has every object, and a checker that is done.
type synced struct{}

// HasSynced returns true.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }

// Name returns the name of the checker.
func (synced) Name() string { return "the store of the server" }

// Done returns a closed channel.
func (synced) Done() <-chan struct{} { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// AddEventHandler adds a handler, and calls it for the objects that the others know. Refresh calls it for the rest.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = append(i.handlers, h)
	for _, r := range i.seen {
		i.call([]cache.ResourceEventHandler{h}, nil, r)
	}
	return synced{}, nil
}

// HasSynced returns true.
func (i *informer) HasSynced() bool { return true }

// AddIndexers does nothing: the only index is that of namespaces.
func (i *informer) AddIndexers(cache.Indexers) error { return nil }

// GetIndexer returns the objects.
func (i *informer) GetIndexer() cache.Indexer { return i.objects }

// refresh calls the handlers for what has changed since the last call.
func (i *informer) refresh() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.handlers) == 0 {
		return
	}
	d, view, _ := i.objects.view()
	if (d == nil || view.Len() == 0) && len(i.seen) == 0 {
		return
	}
	now := map[string]*store.Record{}
	if d != nil {
		for r := range view.All() {
			now[r.Path] = r
		}
	}
	for path, r := range now {
		if before := i.seen[path]; before != r {
			i.call(i.handlers, before, r)
		}
	}
	for path, before := range i.seen {
		if now[path] == nil {
			i.call(i.handlers, before, nil)
		}
	}
	i.seen = now
}

// call tells handlers of one change. The caller holds the lock.
func (i *informer) call(handlers []cache.ResourceEventHandler, before, after *store.Record) {
	d := i.objects.factory.Kind(i.objects.kind)
	if d == nil {
		return
	}
	var values [2]any
	for n, r := range []*store.Record{before, after} {
		if r == nil {
			continue
		}
		value, err := i.objects.decode(d, r)
		if err != nil {
			return // the object is not valid for its type, so no lister shows it either
		}
		values[n] = value
	}
	for _, h := range handlers {
		switch {
		case before == nil:
			h.OnAdd(values[1], false)
		case after == nil:
			h.OnDelete(values[0])
		default:
			h.OnUpdate(values[0], values[1])
		}
	}
}
