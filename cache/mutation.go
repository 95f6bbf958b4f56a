package cache

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"github.com/leatproject/leat/api"
)

// sweepAt is how many objects a detector takes on before it first looks for dead ones.
const sweepAt = 1024

// MutationDetector finds objects that were changed although they are shared. It keeps a clone of every object that it
// is shown, for as long as somebody holds the object: the cache, or a handler that has still to be told. So it costs as
// much memory as the cache and is meant for tests and for debugging. The zero value is ready, and safe for concurrent
// use; that somebody changes an object during Check is a data race, as it is for every other reader.
// It corresponds to cache.MutationDetector of client-go, which keeps what it was shown for two minutes, and panics.
type MutationDetector[T api.Object] struct {
	mu      sync.Mutex // guards the fields below
	watched map[weak.Pointer[byte]]watched[T]
	sweep   int // the number of objects at which the dead ones are next let go
}

// watched is what is kept of an object.
type watched[T any] struct {
	clone T            // as it was when it was observed, or last reported
	elem  reflect.Type // what the pointer points to
}

// Mutation is a change to an object that was shared.
type Mutation struct {
	Key  api.Key // as it was when the object was observed
	Diff string  // a line for each field: its path, what it was, what it is; of bytes, which may be secret, the length
}

// String returns the key and, below it, the diff.
func (m Mutation) String() string {
	return fmt.Sprintf("%s was changed after it was shared:\n%s", api.FormatKey(m.Key), m.Diff)
}

// Observe remembers an object as it is now. One that is watched already is not looked at. An object that is not a
// pointer panics.
func (d *MutationDetector[T]) Observe(object T) {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("cache: a mutation detector watches pointers to objects, and %T is none, or nil", object))
	}
	p := weak.Make((*byte)(v.UnsafePointer()))
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.watched[p]; known {
		return
	}
	if len(d.watched) >= max(d.sweep, sweepAt) {
		d.forgetDead()
		d.sweep = 2 * len(d.watched)
	}
	if d.watched == nil {
		d.watched = map[weak.Pointer[byte]]watched[T]{}
	}
	d.watched[p] = watched[T]{clone: api.Clone(object), elem: v.Type().Elem()}
}

// Check compares every object that somebody still holds with its clone, and returns those that differ, sorted by key.
// Each change is returned once.
func (d *MutationDetector[T]) Check() []Mutation {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetDead()
	var mutations []Mutation
	for p, w := range d.watched {
		object, alive := revive[T](p, w.elem)
		if !alive {
			continue
		}
		if diff := diffOf(reflect.ValueOf(w.clone), reflect.ValueOf(object)); diff != "" {
			mutations = append(mutations, Mutation{Key: api.KeyOf(w.clone), Diff: diff})
			d.watched[p] = watched[T]{clone: api.Clone(object), elem: w.elem}
		}
	}
	slices.SortFunc(mutations, func(a, b Mutation) int { return compareKeys(a.Key, b.Key) })
	return mutations
}

// Len returns the number of objects that are watched, among them dead ones that the garbage collector has not found or
// that have not been let go yet.
func (d *MutationDetector[T]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.watched)
}

func (d *MutationDetector[T]) forgetDead() {
	for p := range d.watched {
		if p.Value() == nil {
			delete(d.watched, p)
		}
	}
}

// revive returns the object that a weak pointer points to, if it is still there. (T is a pointer type, but Go has no way
// to name what it points to; hence the detour over bytes.)
func revive[T any](p weak.Pointer[byte], elem reflect.Type) (object T, alive bool) {
	b := p.Value()
	if b == nil {
		return object, false
	}
	return reflect.NewAt(elem, unsafe.Pointer(b)).Interface().(T), true
}
