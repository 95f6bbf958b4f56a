package scopes

import (
	"cmp"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// Follow makes the set have one scope for each object of another informer, for example for each namespace with a label.
// scopeOf returns the scope of an object, or false if the object has no scope at present. It must return at once. A
// scope is added when its object appears, and removed with notifications when its object disappears or has no scope any
// more. The name identifies a scope: a scope with another selector or source, but the same name, changes nothing. Two
// objects must not have scopes of the same name. The second scope is logged and not added.
//
// The set is synced when the scopes of all objects in the first list of the other informer are synced. Follow must be
// called before the set runs; otherwise it returns informer.ErrRunning. The caller runs the other informer. When the
// set ends, it removes its handler from the other informer.
func Follow[T, O api.Object](s *Set[T], objects *informer.Informer[O], scopeOf func(O) (Scope[T], bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != runstate.Created {
		return fmt.Errorf("follow %s: %w", objects.Resource(), informer.ErrRunning)
	}
	f := &follower[T]{set: s, names: map[api.Key]string{}}
	r, err := objects.Subscribe(func(c api.Change[O]) {
		scope, wanted := Scope[T]{}, false
		if c.Type != api.Deleted {
			scope, wanted = scopeOf(c.Object)
		}
		f.follow(api.KeyOf(c.Object), scope, wanted)
	}, informer.HandlerOptions{Name: "scopes of " + s.resource.String(), ResyncPeriod: -1})
	if err != nil {
		return err
	}
	s.followed = append(s.followed, r)
	return nil
}

// follower knows the scopes of the objects of another informer.
type follower[T api.Object] struct {
	set   *Set[T]
	mu    sync.Mutex         // guards the field below
	names map[api.Key]string // of the scopes of objects
}

// follow adds or removes the scope of an object.
func (f *follower[T]) follow(key api.Key, scope Scope[T], wanted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, known := f.names[key]
	if wanted && scope.Name == "" && scope.Source != nil {
		scope.Name = defaultName(scope)
	}
	if known && (!wanted || scope.Name != name) {
		delete(f.names, key)
		f.set.Remove(name, Notify)
		known = false
	}
	if known || !wanted {
		return
	}
	if err := f.set.Add(scope); err != nil {
		f.set.logger().Warn("the object gets no scope", zap.String("key", api.FormatKey(key)), zap.NamedError("err", err))
		return
	}
	f.names[key] = scope.Name
}

func (s *Set[T]) logger() *zap.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.log, zap.NewNop())
}
