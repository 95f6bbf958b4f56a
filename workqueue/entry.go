package workqueue

import (
	"math"
	"time"
)

// stamp is a time in nanoseconds since a queue's base. It is cheaper to read and to compare than a time.Time. Zero
// means that the queue did not read the clock.
type stamp int64

// add returns the stamp that is later by d, or the largest stamp.
func (s stamp) add(d time.Duration) stamp {
	if s > math.MaxInt64-stamp(d) {
		return math.MaxInt64
	}
	return s + stamp(d)
}

// time converts a stamp that counts from base to a time.Time.
func (s stamp) time(base time.Time) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return base.Add(time.Duration(s))
}

// pending is the request for a key that is not handed out yet.
type pending uint8

const (
	idle    pending = iota // no request
	delayed                // the key becomes ready at a time; the entry is in the heap
	queued                 // the key is ready; the entry is in the lists of readyQueue
	rerun                  // the key becomes ready at its Done
)

// id identifies an entry within its queue; zero means no entry. Entries refer to each other by id, because an id has
// half the size of a pointer and the garbage collector ignores it.
type id uint32

// entry is the state of a key. It exists from the first add until nothing is pending for the key and no worker
// processes it. Pending and processing are independent, with one exception: an entry is never queued while it is
// processed. This rule keeps two workers from processing one key at once.
type entry[K comparable] struct {
	key   K
	id    id
	hash  uint32
	links [2]link

	pending    pending
	processing bool
	heapIndex  int32  // index in the heap, while delayed
	priority   int    // the highest priority of the pending adds
	order      uint64 // order among entries with the same due time, while delayed

	added   stamp // time of the first pending add
	ready   stamp // when the entry became ready, or will become ready
	started stamp // time of the hand-out

	causes *causeList // causes of the pending adds; nil before the first cause
	held   *causeList // causes of the adds that the current processing answers; the worker reads it until Done
}

// dropPending removes the pending request and its causes.
func (e *entry[K]) dropPending() {
	e.pending = idle
	if e.causes != nil {
		e.causes.reset()
	}
}

// link is the position of an entry in one list.
type link struct{ prev, next id }

// An entry has two links, because it is in two lists: one by class and one by age.
const (
	byClass = iota // the FIFO of its priority
	byAge          // the FIFO of all ready entries, of all processed entries, or of the free entries of a chunk
)
