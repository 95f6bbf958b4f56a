package deltafifo

import "github.com/leatproject/leat/api"

// pending is one half of the double buffer: the changes that were put in since the last Pop, or those that the
// consumer is working on.
type pending[T any] struct {
	objects  []ObjectDeltas[T]
	position map[api.Key]int // in objects
	// singles holds the one delta that nearly every object has, so that it needs no slice of its own.
	singles []Delta[T]
}

// keepAtMost bounds the buffers that are kept for the next round: emptying a map costs its capacity, so one that a
// large list has grown would make every later batch of one event pay for it.
const keepAtMost = 1024

func newPending[T any]() *pending[T] {
	return &pending[T]{position: map[api.Key]int{}}
}

// expect makes room for n more objects, in place of many steps of growth.
func (p *pending[T]) expect(n int) {
	if len(p.objects) == 0 && n > keepAtMost {
		p.objects, p.singles = make([]ObjectDeltas[T], 0, n), make([]Delta[T], 0, n)
		p.position = make(map[api.Key]int, n)
	}
}

// append adds a delta to those of its object.
func (p *pending[T]) append(key api.Key, d Delta[T]) {
	if i, ok := p.position[key]; ok {
		p.objects[i].Deltas = append(p.objects[i].Deltas, d)
		return
	}
	p.position[key] = len(p.objects)
	n := len(p.singles)
	p.singles = append(p.singles, d)
	p.objects = append(p.objects, ObjectDeltas[T]{Key: key, Deltas: p.singles[n : n+1 : n+1]})
}

// reset empties the buffers, so that they pin no object. It reports whether they are worth keeping.
func (p *pending[T]) reset() bool {
	if len(p.objects) > keepAtMost {
		return false
	}
	clear(p.objects)
	clear(p.singles)
	clear(p.position)
	p.objects, p.singles = p.objects[:0], p.singles[:0]
	return true
}
