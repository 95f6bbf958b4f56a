package cachedclient

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// overlay remembers what a client wrote and deleted until the cache shows it. A read that uses the overlay looks at the
// cache under the overlay's mutex. So all reads, and the entries that they remove, have one order, and no reader sees
// an older state after a newer one.
//
// The overlay ignores versions without an order: it cannot tell whether the cache is older or newer than such a write,
// and must not hide a newer state. It corresponds to cache.MutationCache of client-go.
type overlay[T api.Object] struct {
	informer *informer.Informer[T]
	limit    int
	age      time.Duration
	count    atomic.Int32 // the number of entries, so that a read of an empty overlay takes no lock

	mu      sync.Mutex // guards the fields below
	written map[api.Key]overlayEntry[T]
	deleted map[types.UID]overlayEntry[T]
	sweepAt int // the number of entries at which makeRoom sweeps
}

// overlayEntry is one write or delete.
type overlayEntry[T api.Object] struct {
	key          api.Key
	uid          types.UID
	isDelete     bool
	object       T      // the written state, shared with all readers; not set for a delete
	excluded     bool   // the informer's selectors do not match the object, so reads must not show it
	version      string // the version that the cache has to reach; may be empty for a delete
	startVersion string // the version of the cache when the entry was added
	added        time.Time
}

func newOverlay[T api.Object](i *informer.Informer[T], o Options) *overlay[T] {
	return &overlay[T]{
		informer: i, limit: o.OverlayLimit, age: o.OverlayAge,
		written: map[api.Key]overlayEntry[T]{}, deleted: map[types.UID]overlayEntry[T]{},
	}
}

// get returns the newest known state of an object.
func (o *overlay[T]) get(key api.Key) (T, bool) {
	if o.count.Load() == 0 {
		return o.informer.Snapshot().Get(key)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	object, found, overrides := o.resolve(o.informer.Snapshot(), key)
	if !overrides {
		delete(o.written, key) // the cache shows it
		o.updateCount()
	}
	return object, found
}

// override is what reads show instead of the object that the cache has.
type override[T api.Object] struct {
	object T
	found  bool // false if reads must not show the object
}

// snapshot returns the cache, and the objects that reads show instead of those in it.
func (o *overlay[T]) snapshot() (*cache.Snapshot[T], map[api.Key]override[T]) {
	if o.count.Load() == 0 {
		return o.informer.Snapshot(), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.informer.Snapshot()
	o.sweep(s)
	all := map[api.Key]override[T]{}
	add := func(key api.Key) {
		if object, found, overrides := o.resolve(s, key); overrides {
			all[key] = override[T]{object, found}
		}
	}
	for key := range o.written {
		add(key)
	}
	for _, e := range o.deleted {
		add(e.key)
	}
	o.updateCount()
	return s, all
}

// resolve decides between the cache and the overlay, and reports whether the overlay overrides the cache. The mutex is
// held. An entry of a written object does not exist if the object was deleted afterwards.
func (o *overlay[T]) resolve(s *cache.Snapshot[T], key api.Key) (object T, found, overrides bool) {
	if e, ok := o.written[key]; ok {
		if !o.outdated(e, s) {
			return e.object, !e.excluded, true
		}
	}
	object, found = s.Get(key)
	if e, deleted := o.deleted[uidOf(object, found)]; deleted && !o.obsolete(e, s) {
		var none T
		return none, false, true
	}
	return object, found, false
}

func uidOf[T api.Object](object T, found bool) types.UID {
	if !found {
		return ""
	}
	return object.GetUID()
}

// outdated reports whether reads must show the cache instead of an entry: the cache has caught up with the entry, or
// never will.
func (o *overlay[T]) outdated(e overlayEntry[T], s *cache.Snapshot[T]) bool {
	same, caughtUp := compare(s, e.key, e.uid, e.version)
	return caughtUp && !(same && e.isDelete) || o.obsolete(e, s)
}

// obsolete reports whether an entry is too old, or whether the server was restored from a backup since.
func (o *overlay[T]) obsolete(e overlayEntry[T], s *cache.Snapshot[T]) bool {
	return time.Since(e.added) >= o.age || wentBack(versionIn(s, e.key.Namespace), e.startVersion) ||
		removed(o.informer, s, e.key.Namespace)
}

// write adds an entry for a written state, unless a newer state or a delete of the object is known.
func (o *overlay[T]) write(object T, excluded bool) {
	e := overlayEntry[T]{
		key: api.KeyOf(object), uid: object.GetUID(), version: object.GetResourceVersion(),
		object: o.copyAsCached(object), excluded: excluded, added: time.Now(),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.informer.Snapshot()
	e.startVersion = versionIn(s, e.key.Namespace)
	earlier, known := o.written[e.key]
	_, deleted := o.deleted[e.uid]
	if deleted || !ordered(e.version) || known && reached(earlier.version, e.version) || o.outdated(e, s) {
		return
	}
	o.makeRoom(s)
	o.written[e.key] = e
	o.updateCount()
}

// delete adds an entry for a delete. The entry is outdated when the cache does not have the object and has reached all
// versions of it that are known.
func (o *overlay[T]) delete(key api.Key, uid types.UID, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.informer.Snapshot()
	if earlier, known := o.written[key]; known && earlier.uid == uid {
		version = newer(version, earlier.version)
		delete(o.written, key)
	}
	if object, found := s.Get(key); uidOf(object, found) == uid {
		version = newer(version, object.GetResourceVersion())
	}
	o.makeRoom(s)
	o.deleted[uid] = overlayEntry[T]{key: key, uid: uid, isDelete: true, version: version, startVersion: versionIn(s, key.Namespace), added: time.Now()}
	o.updateCount()
}

// copyAsCached returns a copy of an object without the fields that the informer drops. A masked object keeps its mark,
// which is in the managedFields.
func (o *overlay[T]) copyAsCached(object T) T {
	object = api.Clone(object)
	options := o.informer.Options()
	if managed, ok := any(object).(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok && !options.KeepManagedFields && codec.RefuseMasked(object) == nil {
		managed.SetManagedFields(nil)
	}
	return object
}

// makeRoom removes outdated entries when the number of entries has doubled or reached the limit, and then the oldest
// entries until there is room for one.
func (o *overlay[T]) makeRoom(s *cache.Snapshot[T]) {
	if o.len() < min(o.limit, o.sweepAt) {
		return
	}
	o.sweep(s)
	o.sweepAt = max(sweepFrom, 2*o.len())
	for o.len() >= o.limit {
		o.removeOldest()
	}
}

func (o *overlay[T]) sweep(s *cache.Snapshot[T]) {
	for key, e := range o.written {
		if o.outdated(e, s) {
			delete(o.written, key)
		}
	}
	for uid, e := range o.deleted {
		if o.outdated(e, s) {
			delete(o.deleted, uid)
		}
	}
}

func (o *overlay[T]) removeOldest() {
	var oldest overlayEntry[T]
	consider := func(e overlayEntry[T]) {
		if oldest.added.IsZero() || e.added.Before(oldest.added) {
			oldest = e
		}
	}
	for _, e := range o.written {
		consider(e)
	}
	for _, e := range o.deleted {
		consider(e)
	}
	if oldest.isDelete {
		delete(o.deleted, oldest.uid)
	} else {
		delete(o.written, oldest.key)
	}
}

func (o *overlay[T]) len() int { return len(o.written) + len(o.deleted) }

// updateCount runs after every change of the number of entries.
func (o *overlay[T]) updateCount() { o.count.Store(int32(o.len())) }
