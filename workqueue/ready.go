package workqueue

import (
	"cmp"
	"slices"
)

// defaultAgeing is the ageing where Options does not say.
const defaultAgeing = 8

// class holds the ready keys of one priority in the order in which they came to it.
type class struct {
	priority int
	entries  list
	length   int
}

// readyQueue decides who is next: the first of the highest class, and at every ageing-th turn at the latest whoever
// has been ready the longest, in whatever class.
//
// Strict priorities would starve the lower classes under load. Deadlines computed from a priority and an age would
// not, but they would let a great backlog of unimportant keys, such as an initial list, go before an urgent one. A
// share of the turns does neither, reads no clock, and gives a bound that does not depend on how many classes there are:
// as long as a key is ready, the key that has been ready the longest is that key or an older one, and one such leaves
// within any `ageing` turns; so a key leaves within ageing × (1 + the number of keys that were ready before it) turns.
type readyQueue[K comparable] struct {
	slab    *slab[K]
	classes []class // ascending by priority; there are few, so a slice does; none is empty, but for a single one
	ages    list
	length  int

	ageing int
	passed int // turns in a row in which the oldest was passed over
}

func (r *readyQueue[K]) push(e *entry[K]) {
	r.slab.push(&r.ages, e, byAge)
	r.enter(e)
	r.length++
}

// pop takes the next entry out. There must be one.
func (r *readyQueue[K]) pop() *entry[K] {
	i := len(r.classes) - 1
	next, oldest := r.classes[i].entries.head, r.ages.head
	e := r.slab.at(next)
	switch {
	case next == oldest:
		r.passed = 0
	case r.passed+1 < r.ageing:
		r.passed++
	default:
		r.passed = 0
		e = r.slab.at(oldest)
		i = r.find(e.priority)
	}
	r.slab.remove(&r.ages, e, byAge)
	r.leave(e, i)
	r.length--
	return e
}

// raise moves an entry to the end of a higher class. It keeps its age.
func (r *readyQueue[K]) raise(e *entry[K], priority int) {
	r.leave(e, r.find(e.priority))
	e.priority = priority
	r.enter(e)
}

// enter puts an entry at the end of its class.
func (r *readyQueue[K]) enter(e *entry[K]) {
	i := len(r.classes) - 1
	if i < 0 || r.classes[i].priority != e.priority { // nearly always it is the highest class, or the only one
		i = r.class(e.priority)
	}
	c := &r.classes[i]
	r.slab.push(&c.entries, e, byClass)
	c.length++
}

// leave takes an entry out of its class, which is the i-th.
func (r *readyQueue[K]) leave(e *entry[K], i int) {
	c := &r.classes[i]
	r.slab.remove(&c.entries, e, byClass)
	c.length--
	if c.length == 0 && len(r.classes) > 1 {
		r.classes = slices.Delete(r.classes, i, i+1)
	}
}

// class returns where the class of a priority is. It is made if there is none.
func (r *readyQueue[K]) class(priority int) int {
	i := r.find(priority)
	switch {
	case i < len(r.classes) && r.classes[i].priority == priority:
	case len(r.classes) == 1 && r.classes[0].length == 0:
		i, r.classes[0].priority = 0, priority
	default:
		r.classes = slices.Insert(r.classes, i, class{priority: priority})
	}
	return i
}

// find returns where the class of a priority is, or belongs.
func (r *readyQueue[K]) find(priority int) int {
	i, _ := slices.BinarySearchFunc(r.classes, priority, func(c class, p int) int {
		return cmp.Compare(c.priority, p)
	})
	return i
}
