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
	"github.com/leatproject/leat/internal/runstate"
)

// write is one write to an object, with the rule by which a cache shows it.
type write struct {
	target writeTarget
	key    api.Key
	uid    types.UID
	// version is the version that was written. It is empty for a delete.
	version string
	// absent says that the cache may also show the write by not having the object: the object was deleted, or the
	// informer's selectors no longer match it. The cache must then have reached minVersion, if that is known, because
	// an older cache may not have the object yet.
	absent     bool
	minVersion string
	// collective says that a DeleteCollection deleted the object. The cache may then also show the write by having the
	// object with a deletion timestamp.
	collective bool
	// startVersion is the version of the cache when the write was recorded. A cache with an older version belongs to a
	// server that was restored from a backup, where the write did not happen.
	startVersion string
}

// isDelete reports whether the write deleted this one object. A DeleteCollection does not count, because the object may
// still exist, and neither does a write after which the selectors no longer match.
func (w write) isDelete() bool { return w.absent && w.version == "" && !w.collective }

// writeTarget is a cacheTarget of any type.
type writeTarget interface {
	// shows reports whether the cache shows a write.
	shows(write) bool
	// version returns the version of the cache for the objects of a namespace.
	version(namespace string) string
	// addWaiter arranges that onChange is called after every change of the cache, until removeWaiter. It returns false
	// if the cache will not change any more.
	addWaiter(u *unseenWrites, onChange func()) bool
	removeWaiter(u *unseenWrites)
	resource() api.Resource
}

// cacheTarget is a cache that will show the writes of a client.
type cacheTarget[T api.Object] struct {
	informer    *informer.Informer[T]
	trace       sync.Once // by the first waiter, so that a client without waiters costs the informer nothing
	waiterCount atomic.Int32

	mu      sync.Mutex // guards the field below
	waiters map[*unseenWrites]func()
}

func newCacheTarget[T api.Object](i *informer.Informer[T]) *cacheTarget[T] {
	return &cacheTarget[T]{informer: i, waiters: map[*unseenWrites]func(){}}
}

func (t *cacheTarget[T]) resource() api.Resource { return t.informer.Resource() }

func (t *cacheTarget[T]) version(namespace string) string {
	return versionIn(t.informer.Snapshot(), namespace)
}

func (t *cacheTarget[T]) shows(w write) bool {
	s := t.informer.Snapshot()
	switch same, caughtUp := compare(s, w.key, w.uid, w.version); {
	case wentBack(versionIn(s, w.key.Namespace), w.startVersion), removed(t.informer, s, w.key.Namespace):
		return true
	case same && w.collective:
		return showsDelete(s, w)
	case same || !w.absent:
		return caughtUp
	case !listed(t.informer, s, w.key.Namespace): // the first list may still contain the object
		return false
	default:
		return !ordered(w.minVersion) || reached(versionIn(s, w.key.Namespace), w.minVersion)
	}
}

// showsDelete reports whether the cached object is being deleted: it has a deletion timestamp. If T does not declare
// the timestamp, a changed version counts.
func showsDelete[T api.Object](s *cache.Snapshot[T], w write) bool {
	object, _ := s.Get(w.key)
	if o, ok := any(object).(interface{ GetDeletionTimestamp() *metav1.Time }); ok {
		return o.GetDeletionTimestamp() != nil
	}
	return object.GetResourceVersion() != w.minVersion
}

// compare reports whether a cache has the object with this UID under a key, and whether the cache has caught up with a
// version of the object. If the cache has the object, the object's own version counts, because an event that could not
// be decoded raises the version of the cache and leaves the object behind. No cache catches up with an empty version.
func compare[T api.Object](s *cache.Snapshot[T], key api.Key, uid types.UID, version string) (same, caughtUp bool) {
	have := versionIn(s, key.Namespace)
	if cached, cachedVersion, found := s.Identity(key); found && cached == uid {
		same, have = true, cachedVersion
	}
	return same, version != "" && reached(have, version)
}

// addWaiter implements writeTarget.
func (t *cacheTarget[T]) addWaiter(u *unseenWrites, onChange func()) bool {
	if runstate.IsClosed(t.informer.Stopped()) {
		return false
	}
	t.trace.Do(func() {
		t.informer.Trace(informer.Trace{Batch: func(informer.TracedBatch) { t.notifyWaiters() }})
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters[u] = onChange
	t.waiterCount.Store(int32(len(t.waiters)))
	return true
}

func (t *cacheTarget[T]) removeWaiter(u *unseenWrites) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiters, u)
	t.waiterCount.Store(int32(len(t.waiters)))
}

// notifyWaiters calls all waiters. It runs for each batch of the informer, mostly without a waiter.
func (t *cacheTarget[T]) notifyWaiters() {
	if t.waiterCount.Load() == 0 {
		return
	}
	t.mu.Lock()
	callbacks := slices.Collect(maps.Values(t.waiters))
	t.mu.Unlock()
	for _, onChange := range callbacks {
		onChange()
	}
}

// reached reports whether a version is the wanted one or a newer one.
func reached(version, wanted string) bool {
	order, ok := api.CompareVersions(version, wanted)
	return ok && order >= 0
}

// wentBack reports whether a version is older than an earlier one.
func wentBack(version, earlier string) bool {
	order, ok := api.CompareVersions(version, earlier)
	return ok && order < 0
}

// ordered reports whether a version can be compared with others.
func ordered(version string) bool {
	_, ok := api.CompareVersions(version, "1")
	return ok
}

// newer returns the newer one of two versions. Both may be empty.
func newer(a, b string) string {
	if !ordered(b) || ordered(a) && reached(a, b) {
		return a
	}
	return b
}
