package workqueue

import (
	"math"
	"time"
)

// stamp is a time in nanoseconds since a queue's base, which is cheaper to take and to compare than a time.Time.
// Zero means that the clock was not read.
type stamp int64

// add returns the stamp a time later, or the last there is.
func (s stamp) add(d time.Duration) stamp {
	if s > math.MaxInt64-stamp(d) {
		return math.MaxInt64
	}
	return s + stamp(d)
}

// time turns a stamp that counts from base into a time.
func (s stamp) time(base time.Time) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return base.Add(time.Duration(s))
}

// pending is what has been asked for a key and not been handed out.
type pending uint8

const (
	idle    pending = iota // nothing
	delayed                // to become ready at a time: the entry is in the heap
	queued                 // ready: the entry is in the lists of readyQueue
	rerun                  // to become ready when its processing is done
)

// entry is everything that the queue knows of a key. There is one from a key's first add to the moment when nothing
// is pending for it and nobody processes it. Pending and processing are independent of each other, but that an entry
// is never queued while it is processed: this is what keeps a key from being processed twice at once.
type entry[K comparable] struct {
	key   K
	hash  uint32
	links [2]link[K]

	pending    pending
	processing bool
	heapIndex  int32  // where in the heap, while delayed
	priority   int    // the highest of the adds that are pending
	order      uint64 // among entries that are due at the same time, while delayed

	added   stamp // when the first of the pending adds was made
	ready   stamp // when the entry became, or will become, ready
	started stamp // when it was handed out

	causes *causeList // of the adds that are pending; nil until there was one
	held   *causeList // of the adds that the current processing answers; the worker reads it until Done
}

// causedEntry is an entry with its first list of causes, for one allocation is cheaper than two.
type causedEntry[K comparable] struct {
	entry entry[K]
	list  causeList
}

func newCausedEntry[K comparable]() *entry[K] {
	c := &causedEntry[K]{}
	c.entry.causes = &c.list
	return &c.entry
}

// note keeps a cause of a pending add.
func (e *entry[K]) note(c *Cause, limit int) {
	if e.causes == nil {
		e.causes = &causeList{}
	}
	e.causes.add(c, limit)
}

// dropPending forgets what was asked for.
func (e *entry[K]) dropPending() {
	e.pending = idle
	if e.causes != nil {
		e.causes.reset()
	}
}

// link is one place in one list.
type link[K comparable] struct{ prev, next *entry[K] }

// An entry has two links, so that it can be found by its class and by its age.
const (
	byClass = iota // the FIFO of its priority
	byAge          // the FIFO of all that are ready; of all that are processed, once it is
)

// list is a FIFO through the entries themselves: taking one out of the middle costs nothing, and no array behind it
// can keep an entry alive that has left. Its length is kept by whoever needs it.
type list[K comparable] struct{ head, tail *entry[K] }

func (l *list[K]) push(e *entry[K], by int) {
	e.links[by].prev = l.tail
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.links[by].next = e
	}
	l.tail = e
}

func (l *list[K]) remove(e *entry[K], by int) {
	at := &e.links[by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[by].prev = at.prev
	}
	*at = link[K]{}
}
