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

// id names an entry within its queue; zero names none. Entries refer to each other by their ids, which are half as
// large as pointers and are nothing to the garbage collector.
type id uint32

// entry is everything that the queue knows of a key. There is one from a key's first add to the moment when nothing
// is pending for it and nobody processes it. Pending and processing are independent of each other, but that an entry
// is never queued while it is processed: this is what keeps a key from being processed twice at once.
type entry[K comparable] struct {
	key   K
	id    id
	hash  uint32
	links [2]link

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

// dropPending forgets what was asked for.
func (e *entry[K]) dropPending() {
	e.pending = idle
	if e.causes != nil {
		e.causes.reset()
	}
}

// link is one place in one list.
type link struct{ prev, next id }

// An entry has two links, so that it can be found by its class and by its age.
const (
	byClass = iota // the FIFO of its priority
	byAge          // the FIFO of all that are ready, or of all that are processed, or the free ones of a chunk
)
