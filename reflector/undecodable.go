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

// Fail is an OnUndecodable that ends Run with the first object that cannot be decoded.
func Fail(e *api.UndecodableError) error { return e }

// errIdentity is what a transform that changes whom an object is about is reported as.
var errIdentity = errors.New("transform: it changed the namespace, the name, the UID or the version")

// transform applies Options.Transform, and contains what user code may do.
func (r *Reflector[T]) transform(object T, kind apiwatch.EventType) (result T, bad *api.UndecodableError) {
	if r.o.Transform == nil {
		return object, nil
	}
	key, uid, version := api.KeyOf(object), object.GetUID(), object.GetResourceVersion()
	fail := func(err error) *api.UndecodableError {
		return &api.UndecodableError{Resource: r.lw.Resource(), Key: key, UID: uid, ResourceVersion: version, Type: kind, Err: err}
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

// noteUndecodable counts, remembers and reports an object. The error it returns ends Run.
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

// undecodables remembers which objects are known in an old state only.
type undecodables struct {
	mu      sync.Mutex // guards the fields below
	current map[api.Key]*api.UndecodableError
	// previous are those from before the list in progress: whatever of them the list does not have is resolved by it.
	previous map[api.Key]*api.UndecodableError
}

func newUndecodables() *undecodables {
	return &undecodables{current: map[api.Key]*api.UndecodableError{}}
}

// maxUndecodables bounds how many are remembered, whatever a server sends. Beyond it an object is counted and logged only:
// Undecodable does not name it, and its state is not recognised when it comes again.
const maxUndecodables = 10_000

func (u *undecodables) add(e *api.UndecodableError) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.current[e.Key]; known || len(u.current) < maxUndecodables {
		u.current[e.Key] = e
	}
}

// version is that of the state which could not be decoded, if it was the newest of its key.
func (u *undecodables) version(key api.Key) (version string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if e, ok := u.current[key]; ok {
		return e.ResourceVersion, true
	}
	return "", false
}

func (u *undecodables) resolved(key api.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.current)+len(u.previous) == 0 {
		return
	}
	delete(u.current, key)
	delete(u.previous, key)
}

// beginList opens a new generation; that of a list which broke off is merged back.
func (u *undecodables) beginList() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.previous == nil {
		u.previous = map[api.Key]*api.UndecodableError{}
	}
	maps.Copy(u.previous, u.current)
	clear(u.current)
}

// endList closes the generation: only what the list itself had remains.
func (u *undecodables) endList() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.previous = nil
}

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
