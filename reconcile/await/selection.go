package await

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// All blocks until at least one object is selected and all selected objects meet a condition at the same moment. It
// returns them in that state, in no particular order. Objects may come and go during the wait. If one object replaces
// another, as in a rolling update, All waits only for the new one. The condition is never called for an object that
// does not exist; use Gone to wait for deletes.
//
// The errors are those of Until.
func All[T api.Object](ctx context.Context, lw api.ListerWatcher[T], c Condition[T], o Options) ([]T, error) {
	s := selection[T]{condition: c, unmet: map[api.Key]Waiting{}}
	w := wait[T]{lw: lw, o: o, what: c.Name, subject: subject(lw.Collection().Resource, o), check: s.check, waiting: s.waiting}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return s.now.List(), nil
}

// subject describes a selection: "all pods", "pods with app=web".
func subject(r api.Resource, o Options) string {
	selectors := slices.DeleteFunc([]string{o.Selector.Labels, o.Selector.Fields}, func(s string) bool { return s == "" })
	if len(selectors) == 0 {
		return "all " + r.String()
	}
	return r.String() + " with " + strings.Join(selectors, " and ")
}

// selection follows all selected objects. It calls the condition only for objects that have changed.
type selection[T api.Object] struct {
	condition Condition[T]
	unmet     map[api.Key]Waiting
	now       *cache.Snapshot[T]
}

func (s *selection[T]) check(initialList bool, changes []api.Change[T], now *cache.Snapshot[T]) (bool, error) {
	s.now = now
	if initialList {
		for key, object := range now.All() {
			if err := s.ask(key, object); err != nil {
				return false, err
			}
		}
		return s.met(), nil
	}
	for n, change := range changes {
		key := api.KeyOf(change.Object)
		if n > 0 && key == api.KeyOf(changes[n-1].Object) {
			continue
		}
		object, exists := now.Get(key)
		if !exists {
			delete(s.unmet, key)
			continue
		}
		if err := s.ask(key, object); err != nil {
			return false, err
		}
	}
	return s.met(), nil
}

func (s *selection[T]) met() bool { return len(s.unmet) == 0 && s.now.Len() > 0 }

func (s *selection[T]) ask(key api.Key, object T) error {
	met, err := s.condition.Met(object, true)
	if err != nil {
		return fmt.Errorf("%s: %w", api.FormatKey(key), err)
	}
	if met {
		delete(s.unmet, key)
	} else {
		s.unmet[key] = s.condition.waiting(key, object, true)
	}
	return nil
}

func (s *selection[T]) waiting() []Waiting { return inOrder(s.unmet) }

// inOrder returns the objects sorted by namespace and name.
func inOrder(unmet map[api.Key]Waiting) []Waiting {
	return slices.SortedFunc(maps.Values(unmet), func(a, b Waiting) int {
		return strings.Compare(api.FormatKey(a.Key), api.FormatKey(b.Key))
	})
}

// Gone blocks until every object that was selected at the start of the wait has been deleted. It returns these objects
// in their first state, in no particular order. It does not wait for objects that are created meanwhile, even under the
// same name, because they have another UID. If the selection is empty, it returns at once.
//
// The errors are those of Until.
func Gone[T api.Object](ctx context.Context, lw api.ListerWatcher[T], o Options) ([]T, error) {
	g := departure[T]{left: map[api.Key]types.UID{}}
	c := Deleted[T]("")
	w := wait[T]{lw: lw, o: o, what: c.Name, subject: subject(lw.Collection().Resource, o), check: g.check}
	w.waiting = func() []Waiting {
		still := map[api.Key]Waiting{}
		for key := range g.left {
			object, exists := g.now.Get(key)
			still[key] = c.waiting(key, object, exists)
		}
		return inOrder(still)
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return g.objects, nil
}

// departure follows the objects of the first list until they are deleted.
type departure[T api.Object] struct {
	objects []T
	left    map[api.Key]types.UID
	now     *cache.Snapshot[T]
}

func (g *departure[T]) check(initialList bool, changes []api.Change[T], now *cache.Snapshot[T]) (bool, error) {
	g.now = now
	if initialList {
		for key, object := range now.All() {
			g.objects = append(g.objects, object)
			g.left[key] = object.GetUID()
		}
	}
	for _, change := range changes {
		key := api.KeyOf(change.Object)
		if object, exists := now.Get(key); !exists || object.GetUID() != g.left[key] {
			delete(g.left, key)
		}
	}
	return len(g.left) == 0, nil
}
