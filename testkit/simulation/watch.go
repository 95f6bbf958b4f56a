package simulation

import (
	"context"
	"sync"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// Reconciler returns a reconciler that reports two reconciles of one key that run at once.
func Reconciler[K comparable](s *Simulation, r controller.Reconciler[K]) controller.Reconciler[K] {
	var mu sync.Mutex // guards working
	working := map[K]bool{}
	return controller.Func[K](func(ctx context.Context, key K) (controller.Result, error) {
		mu.Lock()
		if working[key] {
			s.Problem("two reconciles of %v at once", key)
		}
		working[key] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			delete(working, key)
		}()
		return r.Reconcile(ctx, key)
	})
}

// Handler returns a handler for an informer of the program. It reports an update that goes back to an older version,
// and an update or a deletion of an object that the handler does not know.
func Handler[T api.Object](s *Simulation) informer.ResourceEventHandler[T] {
	known := map[api.Key]bool{} // an informer calls one method at a time
	return informer.HandlerFuncs[T]{
		AddFunc: func(obj T, _ bool) {
			if known[api.KeyOf(obj)] {
				s.Problem("%s was added twice", api.KeyOf(obj))
			}
			known[api.KeyOf(obj)] = true
		},
		UpdateFunc: func(old, obj T) {
			if !known[api.KeyOf(obj)] {
				s.Problem("%s was updated before it was added", api.KeyOf(obj))
			}
			if order, ok := api.CompareVersions(old.GetResourceVersion(), obj.GetResourceVersion()); ok && order > 0 {
				s.Problem("%s went back from version %s to %s", api.KeyOf(obj), old.GetResourceVersion(), obj.GetResourceVersion())
			}
		},
		DeleteFunc: func(obj informer.DeletedObject[T]) {
			if !known[api.KeyOf(obj.Object)] {
				s.Problem("%s was deleted before it was added", api.KeyOf(obj.Object))
			}
			delete(known, api.KeyOf(obj.Object))
		},
	}
}
