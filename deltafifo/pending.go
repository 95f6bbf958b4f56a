package deltafifo

import (
	"math"

	"github.com/leatproject/leat/api"
)

// pending is one half of the double buffer: the changes that were put in since the last Pop, or those that the
// consumer is working on.
//
// It has no index of its own. Where the changes of a known object are is noted beside the object, where it costs no
// memory and no look-up; only of the objects that are known no more is it noted here.
type pending[T any] struct {
	objects []ObjectDeltas[T]
	gone    map[api.Key]uint32 // where the changes of deleted objects are
	// singles holds the one delta that nearly every object has, so that it needs no slice of its own.
	singles []Delta[T]
}

// keepAtMost bounds the buffers that are kept for the next round: emptying a map costs its capacity, so one that a
// large list has grown would make every later batch of one event pay for it.
const keepAtMost = 1024

// nowhere is the position of what is not pending.
const nowhere = math.MaxUint32

func newPending[T any]() *pending[T] {
	return &pending[T]{gone: map[api.Key]uint32{}}
}

// expect makes room for n more objects, in place of many steps of growth.
func (p *pending[T]) expect(n int) {
	if len(p.objects) == 0 && n > keepAtMost {
		p.objects, p.singles = make([]ObjectDeltas[T], 0, n), make([]Delta[T], 0, n)
	}
}

// positionOfGone returns where the changes of an object are that is not known, but may have been.
func (p *pending[T]) positionOfGone(key api.Key) uint32 {
	if len(p.gone) > 0 {
		if at, ok := p.gone[key]; ok {
			return at
		}
	}
	return nowhere
}

// append adds a delta to those of its object, and returns where they are. at is where they were put last: that they have
// been popped since shows in that something else is there, or nothing.
func (p *pending[T]) append(at uint32, key api.Key, d Delta[T]) uint32 {
	if int64(at) < int64(len(p.objects)) && p.objects[at].Key == key {
		p.objects[at].Deltas = append(p.objects[at].Deltas, d)
		return at
	}
	n := len(p.singles)
	p.singles = append(p.singles, d)
	p.objects = append(p.objects, ObjectDeltas[T]{Key: key, Deltas: p.singles[n : n+1 : n+1]})
	return uint32(n)
}

// reset empties the buffers, so that they pin no object. It reports whether they are worth keeping.
func (p *pending[T]) reset() bool {
	if len(p.objects) > keepAtMost {
		return false
	}
	clear(p.objects)
	clear(p.singles)
	clear(p.gone)
	p.objects, p.singles = p.objects[:0], p.singles[:0]
	return true
}
