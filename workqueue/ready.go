package workqueue

import (
	"cmp"
	"slices"
)

// ageing keeps low priorities from starving: of so many hand-outs in a row, at least one goes to the key that has been
// ready the longest.
const ageing = 8

// class holds the ready keys of one priority, in the order in which they entered the class.
type class struct {
	priority int
	entries  list
	length   int
}

// readyQueue chooses the next key. It takes the first key of the highest class. At least once in `ageing` turns, it
// takes the key that has been ready the longest, in any class.
//
// Strict priorities would starve the lower classes under load. Deadlines computed from priority and age would not, but
// a large backlog of unimportant keys, such as an initial list, would then go before an urgent key. A share of the
// turns avoids both, reads no clock, and gives a bound that does not depend on the number of classes. The bound: a key
// leaves within ageing × (1 + the number of keys that were ready before it) turns. The reason: while a key is ready,
// the oldest ready key is this key or an older one, and the oldest leaves within `ageing` turns.
type readyQueue[K comparable] struct {
	table   *table[K]
	classes []class // at least one, ascending by priority; only a single class may be empty
	ages    list
	length  int

	ageing int
	passed int // turns in a row that did not take the oldest key
}

func (r *readyQueue[K]) push(e *entry[K]) {
	r.table.push(&r.ages, e, byAge)
	r.enter(e)
	r.length++
}

// pop removes the next entry and returns it. The queue must not be empty.
func (r *readyQueue[K]) pop() *entry[K] {
	next := r.classes[len(r.classes)-1].entries.head
	if next == r.ages.head || r.passed+1 >= r.ageing {
		next, r.passed = r.ages.head, 0
	} else {
		r.passed++
	}
	e := r.table.at(next)
	r.table.remove(&r.ages, e, byAge)
	r.leave(e)
	r.length--
	return e
}

// raise moves an entry to the end of a higher class. The entry keeps its age.
func (r *readyQueue[K]) raise(e *entry[K], priority int) {
	r.leave(e)
	e.priority = priority
	r.enter(e)
}

// enter appends an entry to its class, and creates the class if necessary.
func (r *readyQueue[K]) enter(e *entry[K]) {
	if r.classes[0].length == 0 { // it is the only class
		r.classes[0].priority = e.priority
	}
	i, found := r.find(e.priority)
	if !found {
		r.classes = slices.Insert(r.classes, i, class{priority: e.priority})
	}
	r.table.push(&r.classes[i].entries, e, byClass)
	r.classes[i].length++
}

// leave removes an entry from its class, and removes the class if it is empty and not the only one.
func (r *readyQueue[K]) leave(e *entry[K]) {
	i, _ := r.find(e.priority)
	c := &r.classes[i]
	r.table.remove(&c.entries, e, byClass)
	c.length--
	if c.length == 0 && len(r.classes) > 1 {
		r.classes = slices.Delete(r.classes, i, i+1)
	}
}

// find returns the index of the class of a priority, or the index where the class belongs.
func (r *readyQueue[K]) find(priority int) (i int, found bool) {
	if last := len(r.classes) - 1; r.classes[last].priority == priority { // usually
		return last, true
	}
	return slices.BinarySearchFunc(r.classes, priority, func(c class, p int) int { return cmp.Compare(c.priority, p) })
}
