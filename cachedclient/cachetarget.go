package cachedclient

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// write is something that was written, and how its cache shows that it knows: by version, or by the object's absence.
type write struct {
	target writeTarget
	key    api.Key
	uid    types.UID
	// version is what was written; empty after a deletion.
	version string
	// absent says that the object need not be there: it was deleted, or belongs into the cache no longer. Then it is
	// enough that it is not, once the cache has reached floor if that is known: before, it may only be not there yet.
	absent bool
	floor  string
	// marked says that it was deleted together with others, and may be there as well, on its way out.
	marked bool
	// since is what the cache had reached when the write was noted. A cache that goes back behind that is a copy of
	// another history, in which the write did not happen.
	since string
}

// deletes tells whether the write was a deletion, as opposed to one after which the object is no longer selected or may
// still be there.
func (w write) deletes() bool { return w.absent && w.version == "" && !w.marked }

// caught is an origin of writes, whatever the type of its objects.
type writeTarget interface {
	// seen tells whether the cache knows a write.
	seen(write) bool
	// position is the version of the cache.
	position() string
	// await lets poke be called after every change of the cache, until forget; it returns false if there will be none.
	await(l *unseenWrites, poke func()) bool
	forget(l *unseenWrites)
	resource() api.Resource
}

// origin is a cache that the writes of a client come back to.
type cacheTarget[T api.Object] struct {
	informer *informer.Informer[T]
	listen   sync.Once // the first time that somebody waits
	deaf     bool      // the informer had stopped already; set by listen
	waiting  atomic.Int32

	mu      sync.Mutex // guards the field below
	waiters map[*unseenWrites]func()
}

func newCacheTarget[T api.Object](i *informer.Informer[T]) *cacheTarget[T] {
	return &cacheTarget[T]{informer: i, waiters: map[*unseenWrites]func(){}}
}

func (o *cacheTarget[T]) resource() api.Resource { return o.informer.Resource() }
func (o *cacheTarget[T]) position() string       { return o.informer.ResourceVersion() }

func (o *cacheTarget[T]) seen(w write) bool {
	s := o.informer.Snapshot()
	switch same, caughtUp := compare(s, w.key, w.uid, w.version); {
	case wentBack(s.ResourceVersion(), w.since):
		return true
	case same && w.marked:
		return leaves(s, w)
	case same || !w.absent:
		return caughtUp
	case !isClosed(o.informer.Synced()): // what is gone may yet come with the first list
		return false
	default:
		return !ordered(w.floor) || reached(s.ResourceVersion(), w.floor)
	}
}

// leaves tells whether the cache shows that an object, which it has, is on its way out: T declares that, or the object
// has changed.
func leaves[T api.Object](s *cache.Snapshot[T], w write) bool {
	object, _ := s.Get(w.key)
	if o, ok := any(object).(interface{ GetDeletionTimestamp() *metav1.Time }); ok {
		return o.GetDeletionTimestamp() != nil
	}
	return object.GetResourceVersion() != w.floor
}

// compare tells whether a cache has an object of that UID under a key, and whether it has caught up with a version of
// it: by the object's own if there is one. The cache's says as much only of an object that is not there, since one that
// could not be decoded stays behind. Nothing catches up with an empty version.
func compare[T api.Object](s *cache.Snapshot[T], key api.Key, uid types.UID, version string) (same, caughtUp bool) {
	have := s.ResourceVersion()
	if object, found := s.Get(key); found && object.GetUID() == uid {
		same, have = true, object.GetResourceVersion()
	}
	return same, version != "" && reached(have, version)
}

// await adds a waiter. The informer is only listened to from the first one on, so that it costs nothing to have a
// client.
func (o *cacheTarget[T]) await(l *unseenWrites, poke func()) bool {
	o.listen.Do(func() {
		_, err := o.informer.Subscribe(func(informer.Notification[T]) { o.changed() }, informer.HandlerOptions{Name: "cachedclient gate"})
		o.deaf = err != nil
	})
	if o.deaf || isClosed(o.informer.Stopped()) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiters[l] = poke
	o.waiting.Store(int32(len(o.waiters)))
	return true
}

func (o *cacheTarget[T]) forget(l *unseenWrites) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiters, l)
	o.waiting.Store(int32(len(o.waiters)))
}

// changed pokes whoever waits. It is called for each notification, and mostly nobody does.
func (o *cacheTarget[T]) changed() {
	if o.waiting.Load() == 0 {
		return
	}
	o.mu.Lock()
	pokes := slices.Collect(maps.Values(o.waiters))
	o.mu.Unlock()
	for _, poke := range pokes {
		poke()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reached tells whether a version is another or a newer one.
func reached(version, wanted string) bool {
	order, ok := api.CompareVersions(version, wanted)
	return ok && order >= 0
}

// wentBack tells whether a version is older than one before.
func wentBack(version, before string) bool {
	order, ok := api.CompareVersions(version, before)
	return ok && order < 0
}

// ordered tells whether a version has an order to others of its kind.
func ordered(version string) bool {
	_, ok := api.CompareVersions(version, "1")
	return ok
}

// newer returns the newer one of two versions, of which either may be empty.
func newer(a, b string) string {
	if !ordered(b) || ordered(a) && reached(a, b) {
		return a
	}
	return b
}
