package cache

import (
	"fmt"
	"reflect"
	"sort"
	"sync"
	"weak"

	"github.com/leatproject/leat/api"
)

// sweepAt is the number of objects at which a detector first looks for dead ones.
const sweepAt = 1024

// MutationDetector finds shared objects that were changed. It keeps a clone of every observed object until the object
// itself is unreachable: until the cache has dropped it and every handler has received it. So it costs as much memory
// as the cache; use it in tests and for debugging.
//
// The zero value is ready to use and safe for concurrent use. Changing an object during Check is a data race with
// Check, as it is with every other reader. It corresponds to cache.MutationDetector of client-go, which keeps objects
// for two minutes and panics when it finds a change.
type MutationDetector[T api.Object] struct {
	mu       sync.Mutex // guards the fields below
	watched  map[weak.Pointer[byte]]watched[T]
	sweep    int // number of objects at which the detector next removes dead ones
	observed int // calls of Observe since the last Check
}

// watched is the record of one object.
type watched[T any] struct {
	clone T            // the object as it was at Observe, or at the last report
	elem  reflect.Type // the type that the pointer points to
}

// Mutation is a change to an object that was shared.
type Mutation struct {
	Key  api.Key // the object's key when it was observed
	Diff string  // one line per field: path, old value, new value; for bytes, which may be secret, only the length
}

// String returns the key and, below it, the diff.
func (m Mutation) String() string {
	return fmt.Sprintf("%s was changed after it was shared:\n%s", api.FormatKey(m.Key), m.Diff)
}

// Observe records the object as it is now. It skips an object that is already recorded. It panics if the object is not
// a pointer.
func (d *MutationDetector[T]) Observe(object T) {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("cache: MutationDetector.Observe needs a non-nil pointer; it got %T", object))
	}
	p := weak.Make((*byte)(v.UnsafePointer()))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observed++
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

// Check compares every object that is still reachable with its clone and returns those that differ, sorted by key. It
// reports each change once.
func (d *MutationDetector[T]) Check() []Mutation {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observed = 0
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
	// sort.Slice is slower than slices.SortFunc, and adds 13 KB less to a program.
	sort.Slice(mutations, func(i, j int) bool { return compareKeys(mutations[i].Key, mutations[j].Key) < 0 })
	return mutations
}

// IsDue reports whether as many objects as the detector holds were observed since the last Check, and at least 1,024. A
// Check at such a time costs the same for each observed object, whatever their number is.
func (d *MutationDetector[T]) IsDue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.observed >= max(sweepAt, len(d.watched))
}

// Len returns the number of recorded objects. It includes dead objects that the garbage collector has not found yet or
// that the detector has not removed yet.
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

// revive returns the object that a weak pointer points to, and reports whether it is still alive. T is a pointer type,
// and Go has no way to name the type that it points to; therefore the code goes through bytes.
func revive[T any](p weak.Pointer[byte], elem reflect.Type) (object T, alive bool) {
	b := p.Value()
	if b == nil {
		return object, false
	}
	return reflect.NewAt(elem, reflect.ValueOf(b).UnsafePointer()).Interface().(T), true
}
