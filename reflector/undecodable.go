package reflector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// Fail is a value for Options.OnUndecodable: the first object that cannot be decoded ends Run.
func Fail(e *api.UndecodableError) error { return e }

// errIdentity is the error of a transform that changes the identity of an object.
var errIdentity = errors.New("transform: it changed the namespace, the name, the UID or the version")

// transform calls Options.Transform. An error, a panic and a changed identity make the object an undecodable one.
func (r *Reflector[T]) transform(object T, kind apiwatch.EventType) (result T, bad *api.UndecodableError) {
	if r.o.Transform == nil {
		return object, nil
	}
	key, uid, version := api.KeyOf(object), object.GetUID(), object.GetResourceVersion()
	fail := func(err error) *api.UndecodableError {
		return &api.UndecodableError{Resource: r.resource(), Key: key, UID: uid, ResourceVersion: version, Type: kind, Err: err}
	}
	defer func() {
		if p := recover(); p != nil {
			bad = fail(fmt.Errorf("transform: panic: %v", p))
		}
	}()
	result, err := r.o.Transform(object)
	if err != nil {
		return result, fail(fmt.Errorf("transform: %w", err))
	}
	if api.KeyOf(result) != key || result.GetUID() != uid || result.GetResourceVersion() != version {
		return result, fail(errIdentity)
	}
	return result, nil
}

// noteUndecodable counts, records and reports an undecodable object. An error that it returns ends Run.
func (r *Reflector[T]) noteUndecodable(e *api.UndecodableError) error {
	if e.Type == apiwatch.Deleted {
		r.undecodable.resolved(e.Key)
	} else {
		r.undecodable.add(e)
	}
	r.status.undecodable()
	if r.o.OnUndecodable == nil {
		r.log.Warn("object cannot be decoded", zap.String("key", api.FormatKey(e.Key)),
			zap.String("rv", e.ResourceVersion), zap.NamedError("err", e.Err))
		return nil
	}
	err := r.o.OnUndecodable(e)
	if err != nil {
		r.fatal = err
	}
	return err
}

// undecodables records the objects whose newest state could not be decoded. Only the reflector's goroutine changes it,
// so that goroutine reads it without the lock.
type undecodables struct {
	mu      sync.Mutex // held to change the fields below, and to read them on another goroutine
	current map[api.Key]*api.UndecodableError
	// previous are the objects from before the list in progress. The end of the list removes those that it did not
	// confirm.
	previous map[api.Key]*api.UndecodableError
}

func newUndecodables() *undecodables {
	return &undecodables{current: map[api.Key]*api.UndecodableError{}}
}

// maxUndecodables bounds the record, because a server may send any number of objects. Beyond it, an object is only
// counted and logged: Undecodable does not return it, and the reflector does not notice when its state is repeated.
const maxUndecodables = 10_000

func (u *undecodables) add(e *api.UndecodableError) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.current[e.Key]; known || len(u.current) < maxUndecodables {
		u.current[e.Key] = e
	}
}

// version returns the version of the state of a key that could not be decoded.
func (u *undecodables) version(key api.Key) (version string, ok bool) {
	if e, ok := u.current[key]; ok {
		return e.ResourceVersion, true
	}
	return "", false
}

// resolved removes a key whose object was decoded or deleted. The key stays in previous, because the store gets the
// list in progress only at its end.
func (u *undecodables) resolved(key api.Key) {
	if _, known := u.current[key]; !known {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.current, key)
}

// beginList moves all objects to previous. Those of an earlier list that did not complete stay there.
func (u *undecodables) beginList() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.previous == nil {
		u.previous = map[api.Key]*api.UndecodableError{}
	}
	maps.Copy(u.previous, u.current)
	clear(u.current)
}

// endList forgets previous, so that only the objects of the list remain.
func (u *undecodables) endList() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.previous = nil
}

// list returns all objects, in no order.
func (u *undecodables) list() []*api.UndecodableError {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.current)
	for key, e := range u.previous {
		if _, newer := all[key]; !newer {
			all[key] = e
		}
	}
	return slices.Collect(maps.Values(all))
}
