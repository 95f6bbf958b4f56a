package await

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// Object blocks until met returns true for the object of a key, and returns the object in that state. If exists is
// false, there is no such object, and met gets its last known state or the zero T. An error of met ends the wait, for
// instance because the object has failed permanently. met runs on the caller's goroutine and must not change the
// object.
//
// met gets the state of the first list and then every state that the server sends, without exception. If an object is
// deleted and created again, met sees that it is gone in between, even if the watch missed the delete. Selectors in the
// options apply in addition to the name; an object that they do not select does not exist for the wait.
//
// The parameter what describes the condition in errors: "success". The errors are those of [Until]. Object lists and
// watches only this object, by name, so the permission to list and watch it is enough. It corresponds to
// watchtools.UntilWithSync of client-go with a field selector.
func Object[T api.Object](ctx context.Context, lw api.ListerWatcher[T], key api.Key, what string, met func(object T, exists bool) (bool, error), o Options) (T, error) {
	var none T
	r := lw.Collection().Resource
	selector, err := selectObject(lw, key, o.Selector.Fields)
	if err != nil {
		return none, fmt.Errorf("wait for %s of %s %s: %w", what, r, api.FormatKey(key), err)
	}
	o.Selector.Fields = selector
	s := single[T]{key: key, met: met}
	w := wait[T]{lw: lw, o: o, what: what, subject: r.String() + " " + api.FormatKey(key), check: s.check, state: s.state}
	if err := w.run(ctx); err != nil {
		return none, err
	}
	return s.object, nil
}

// selectObject returns the field selector of one object. It contains the namespace only if the ListerWatcher is not
// limited to a namespace, because some servers cannot select by it.
func selectObject[T any](lw api.ListerWatcher[T], key api.Key, others string) (string, error) {
	r, namespace := lw.Collection().Resource, lw.Collection().Namespace
	switch {
	case key.Name == "":
		return "", fmt.Errorf("await: the name is empty")
	case r.Namespaced && key.Namespace == "":
		return "", fmt.Errorf("await: %s are namespaced; the namespace is missing", r)
	case !r.Namespaced && key.Namespace != "":
		return "", fmt.Errorf("await: %s are cluster-scoped; namespace %q is not allowed", r, key.Namespace)
	}
	selectors := []string{fields.OneTermEqualSelector("metadata.name", key.Name).String()}
	switch {
	case namespace != "" && namespace != key.Namespace:
		return "", fmt.Errorf("await: the object is in namespace %q, but the client is for namespace %q", key.Namespace, namespace)
	case namespace == "" && r.Namespaced:
		selectors = append(selectors, fields.OneTermEqualSelector("metadata.namespace", key.Namespace).String())
	}
	if others != "" {
		selectors = append(selectors, others)
	}
	return strings.Join(selectors, ","), nil
}

// single follows one object.
type single[T api.Object] struct {
	key    api.Key
	met    func(object T, exists bool) (bool, error)
	object T // its last known state
	exists bool
}

// check calls the condition with each new state, in order.
func (s *single[T]) check(initialList bool, changes []api.Change[T], now *cache.Snapshot[T]) (bool, error) {
	none := true
	for _, change := range changes {
		if api.KeyOf(change.Object) != s.key {
			continue
		}
		none = false
		s.object, s.exists = change.Object, change.Type != api.Deleted
		if met, err := s.met(s.object, s.exists); met || err != nil {
			return met, err
		}
	}
	if !none || !initialList {
		return false, nil
	}
	if object, ok := now.Get(s.key); ok {
		s.object, s.exists = object, true
	}
	return s.met(s.object, s.exists)
}

func (s *single[T]) state() string {
	if !s.exists {
		return "it does not exist"
	}
	return "it is at version " + s.object.GetResourceVersion()
}
