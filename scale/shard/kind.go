package shard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// Kind is a kind whose objects the members of a group divide among themselves. It has the parts of one controller that
// know the ranges. Make one with For; each controller needs its own.
type Kind[T api.Object] struct {
	member  *Member
	objects controller.Informer[T]
	ready   *fresh
	follow  func(hashrange.Follower) (remove func()) // adds ready
	later   bool                                     // After was called

	mu         sync.Mutex // guards the fields below
	gone       map[api.Key]deletion
	deletions  uint64 // counts all
	source     bool   // Source was called
	reconciler bool   // Reconciler was called
}

// deletion is that of an object whose reconcile has not succeeded yet, or comes again.
type deletion struct {
	hash   uint64
	number uint64 // 1 for the first deletion of this Kind
}

// For returns the parts of a controller for the objects of an informer. The informer may have all objects, or only
// those in the ranges of this replica. It must not be nil.
func For[T api.Object](m *Member, objects controller.Informer[T]) *Kind[T] {
	if m == nil || objects == nil {
		panic("shard: For needs a member and an informer")
	}
	return &Kind[T]{
		member: m, objects: objects, gone: map[api.Key]deletion{},
		ready: &fresh{changed: make(chan struct{}, 1)}, follow: m.Follow,
	}
}

// After makes the controller work only in ranges that another follower of the member has, such as shardedsource.Scopes:
// pass its method Then. So no reconcile reads a cache that has a part of a range only. The controller gets all keys of
// a range when the follower has it. Call After before the controller runs. It returns k.
func (k *Kind[T]) After(then func(hashrange.Follower) (remove func())) *Kind[T] {
	k.follow, k.later = then, true
	return k
}

// Source returns a source that adds the keys of objects in the ranges of this replica: after each change, and all of
// them when the replica gets a range. Use it instead of controller.For.
// A second call panics.
func (k *Kind[T]) Source() controller.Source[api.Key] {
	k.once(&k.source, "Source")
	return source[T]{controller.For(k.objects).When(k.passes), k}
}

// Reconciler returns a reconciler that calls r for keys in the ranges of this replica, and drops all others. The
// context ends when the lease is lost; see Begin and Fence. Gates must be outside: controller.Gated(k.Reconciler(r),
// gate).
//
// By UID, a key without an object in the cache is dropped, unless the informer has notified the Source of the deletion.
// A deletion that no replica has reconciled before its range changes the owner gets no reconcile, as after a restart.
// Use a finalizer if it needs one. A second call panics.
func (k *Kind[T]) Reconciler(r controller.Reconciler[api.Key]) controller.Reconciler[api.Key] {
	k.once(&k.reconciler, "Reconciler")
	return controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		before := k.deletion(key)
		hash, known := k.hashOf(key, before)
		if !known {
			return controller.Result{}, nil
		}
		working, end, ours := k.member.Begin(ctx, hash)
		defer end()
		if !ours || k.later && !k.ready.has(hash) {
			k.forget(key, before)
			return controller.Result{}, nil
		}
		result, err := r.Reconcile(working, key)
		if err == nil && result.RequeueAfter <= 0 || errors.Is(err, controller.ErrTerminal) {
			k.forget(key, before) // no other reconcile of this deletion comes
		}
		return result, err
	})
}

// hash returns the hash of an object.
func (k *Kind[T]) hash(object T) uint64 {
	if k.member.o.Field == hashrange.Namespace {
		return hashrange.Hash(object.GetNamespace())
	}
	return hashrange.Hash(string(object.GetUID()))
}

// once panics if a method was called before. Two controllers with one Kind would take the deletions from each other.
func (k *Kind[T]) once(called *bool, method string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if *called {
		panic("shard: Kind." + method + " was called before; make a Kind for each controller")
	}
	*called = true
}

// deletion returns the deletion of the object with a key, if its reconcile has not succeeded yet, or comes again.
func (k *Kind[T]) deletion(key api.Key) deletion {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone[key]
}

// hashOf returns the hash of a key, if it is known. d is the deletion of the key.
func (k *Kind[T]) hashOf(key api.Key, d deletion) (hash uint64, known bool) {
	if k.member.o.Field == hashrange.Namespace {
		return hashrange.Hash(key.Namespace), true
	}
	if object, found := k.objects.Cache().Get(key); found {
		k.forget(key, d) // it was of another object, and this one may leave the cache without a deletion
		return k.hash(object), true
	}
	return d.hash, d.number > 0
}

// forget forgets a deletion. One that the informer has noticed later stays, because its reconcile comes next.
func (k *Kind[T]) forget(key api.Key, d deletion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone[key] == d {
		delete(k.gone, key)
	}
}

// passes reports whether a change is of an object in the ranges of this replica. If it is not, the key is added when
// the replica gets the range, from a cache that already has the change.
func (k *Kind[T]) passes(c api.Change[T]) bool {
	hash := k.hash(c.Object)
	if !k.member.owns(hash) {
		return false
	}
	if c.Type == api.Deleted {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.deletions++
		k.gone[api.KeyOf(c.Object)] = deletion{hash, k.deletions}
	}
	return true
}

// source is a source of an informer that also follows the ranges.
type source[T api.Object] struct {
	controller.InformerSource[T, api.Key]
	kind *Kind[T]
}

// Run implements controller.Source.
func (s source[T]) Run(ctx context.Context, sink *controller.Sink[api.Key]) error {
	f := s.kind.ready
	defer s.kind.follow(f)()
	var active sync.WaitGroup
	defer active.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	active.Go(func() {
		for {
			select {
			case <-f.changed:
				s.add(f.take(), sink)
			case <-ctx.Done():
				return
			}
		}
	})
	return s.InformerSource.Run(ctx, sink)
}

// add adds the keys of the cached objects in new ranges.
func (s source[T]) add(ranges hashrange.Set, sink *controller.Sink[api.Key]) {
	for key, object := range s.kind.objects.Cache().All() {
		if ranges.Contains(s.kind.hash(object)) {
			sink.Add(key, workqueue.Item{Priority: controller.LowPriority, Cause: workqueue.Cause{
				Source: s.String(), Event: "acquired", Object: api.FormatKey(key), Version: object.GetResourceVersion(), At: time.Now(),
			}})
		}
	}
}

// fresh is a follower that remembers which ranges are new.
type fresh struct {
	changed chan struct{} // has an element if there are new ranges

	mu     sync.Mutex // guards the fields below
	held   hashrange.Set
	ranges hashrange.Set
}

// Follow implements hashrange.Follower.
func (f *fresh) Follow(held hashrange.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ranges = f.ranges.Union(held.Minus(f.held)).Intersect(held)
	f.held = held
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// has reports whether a range has a hash.
func (f *fresh) has(hash uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held.Contains(hash)
}

// take returns the new ranges, once.
func (f *fresh) take() hashrange.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	ranges := f.ranges
	f.ranges = nil
	return ranges
}
