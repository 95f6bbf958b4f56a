package cachedclient

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// overlay is what was written and deleted, until the cache knows it. Every look at the cache that concerns the overlay
// is taken under its lock, so that looks and what is forgotten because of them have one order, and no reader goes back.
//
// It knows versions that have an order only: of others nobody can say whether the cache is before or after a write, and
// a cache must never be made to look older than it is. It corresponds to cache.MutationCache of client-go.
type overlay[T api.Object] struct {
	informer *informer.Informer[T]
	limit    int
	age      time.Duration
	count    atomic.Int32 // of all that is remembered, so that a read of an empty overlay takes no lock

	mu      sync.Mutex // guards the fields below
	written map[api.Key]overlayEntry[T]
	deleted map[types.UID]overlayEntry[T]
	sweepAt int // how many there may be before those that the cache knows are looked for
}

// mark is one thing that is remembered.
type overlayEntry[T api.Object] struct {
	key      api.Key
	uid      types.UID
	deletes  bool
	object   T      // as it was written, unless deleted; shared, as the cache's are
	excluded bool   // the informer's selectors exclude the object since, and so it must not be shown
	version  string // that the cache has to reach; may be empty for a deletion
	since    string // what the cache had reached then
	at       time.Time
}

func newOverlay[T api.Object](i *informer.Informer[T], o Options) *overlay[T] {
	return &overlay[T]{
		informer: i, limit: o.OverlayLimit, age: o.OverlayAge,
		written: map[api.Key]overlayEntry[T]{}, deleted: map[types.UID]overlayEntry[T]{},
	}
}

// get returns the newest that is known of an object.
func (o *overlay[T]) get(key api.Key) (T, bool) {
	if o.count.Load() == 0 {
		return o.informer.Snapshot().Get(key)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	object, found, differs := o.resolve(o.informer.Snapshot(), key)
	if !differs {
		delete(o.written, key) // the cache knows it
		o.counted()
	}
	return object, found
}

// shown is what a list shows in place of what the cache has.
type shown[T api.Object] struct {
	object T
	found  bool
}

// over returns the cache, and what is to be shown differently.
func (o *overlay[T]) over() (*cache.Snapshot[T], map[api.Key]shown[T]) {
	if o.count.Load() == 0 {
		return o.informer.Snapshot(), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.informer.Snapshot()
	o.sweep(s)
	differently := map[api.Key]shown[T]{}
	show := func(key api.Key) {
		if object, found, differs := o.resolve(s, key); differs {
			differently[key] = shown[T]{object, found}
		}
	}
	for key := range o.written {
		show(key)
	}
	for _, m := range o.deleted {
		show(m.key)
	}
	o.counted() // it may be less
	return s, differently
}

// resolve decides between the cache and what is remembered, under the lock. What was written to an object that was
// deleted after that is not remembered any more.
func (o *overlay[T]) resolve(s *cache.Snapshot[T], key api.Key) (object T, found, differs bool) {
	if m, ok := o.written[key]; ok {
		if !o.outdated(m, s) {
			return m.object, !m.excluded, true
		}
	}
	object, found = s.Get(key)
	if m, gone := o.deleted[uidOf(object, found)]; gone && !o.obsolete(m, s) {
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

// outdated tells whether the cache is right: it has reached what was written, or will not.
func (o *overlay[T]) outdated(m overlayEntry[T], s *cache.Snapshot[T]) bool {
	same, caughtUp := compare(s, m.key, m.uid, m.version)
	return caughtUp && !(same && m.deletes) || o.obsolete(m, s)
}

// obsolete tells whether the cache is a copy of another history, or has been waited for long enough.
func (o *overlay[T]) obsolete(m overlayEntry[T], s *cache.Snapshot[T]) bool {
	return wentBack(s.ResourceVersion(), m.since) || time.Since(m.at) >= o.age
}

// write remembers a state, unless a newer one of the object is, or its deletion.
func (o *overlay[T]) write(object T, excluded bool) {
	m := overlayEntry[T]{
		key: api.KeyOf(object), uid: object.GetUID(), version: object.GetResourceVersion(),
		object: o.prepare(object), excluded: excluded, at: time.Now(),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.informer.Snapshot()
	m.since = s.ResourceVersion()
	earlier, known := o.written[m.key]
	_, gone := o.deleted[m.uid]
	if gone || !ordered(m.version) || known && reached(earlier.version, m.version) || o.outdated(m, s) {
		return
	}
	o.makeRoom(s)
	o.written[m.key] = m
	o.counted()
}

// delete remembers that an object is gone. Once the cache does not have it, and is not older than anything that was
// known of it, that can be forgotten.
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
	o.deleted[uid] = overlayEntry[T]{key: key, uid: uid, deletes: true, version: version, since: s.ResourceVersion(), at: time.Now()}
	o.counted()
}

// prepare makes a copy that looks as the cached ones do.
func (o *overlay[T]) prepare(object T) T {
	object = api.Clone(object)
	options := o.informer.Options()
	if managed, ok := any(object).(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok && !options.KeepManagedFields {
		managed.SetManagedFields(nil)
	}
	return object
}

// makeRoom forgets what the cache knows, every so often and when the limit is reached, and then what is oldest.
func (o *overlay[T]) makeRoom(s *cache.Snapshot[T]) {
	if o.len() < min(o.limit, o.sweepAt) {
		return
	}
	o.sweep(s)
	o.sweepAt = max(sweepFrom, 2*o.len())
	for o.len() >= o.limit {
		o.forgetOldest()
	}
}

func (o *overlay[T]) sweep(s *cache.Snapshot[T]) {
	for key, m := range o.written {
		if o.outdated(m, s) {
			delete(o.written, key)
		}
	}
	for uid, m := range o.deleted {
		if o.outdated(m, s) {
			delete(o.deleted, uid)
		}
	}
}

func (o *overlay[T]) forgetOldest() {
	var oldest overlayEntry[T]
	consider := func(m overlayEntry[T]) {
		if oldest.at.IsZero() || m.at.Before(oldest.at) {
			oldest = m
		}
	}
	for _, m := range o.written {
		consider(m)
	}
	for _, m := range o.deleted {
		consider(m)
	}
	if oldest.deletes {
		delete(o.deleted, oldest.uid)
	} else {
		delete(o.written, oldest.key)
	}
}

func (o *overlay[T]) len() int { return len(o.written) + len(o.deleted) }

func (o *overlay[T]) counted() { o.count.Store(int32(o.len())) }
