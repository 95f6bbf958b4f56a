package workqueue

import "time"

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
	heapIndex  int32 // index in the heap, while delayed
	priority   int   // the highest priority of the pending adds

	// Times count from the queue's base. That makes them smaller than a time.Time, and cheaper to read and to compare.
	// Zero means that the queue did not read the clock.
	added   time.Duration // time of the first pending add
	ready   time.Duration // when the entry became ready, or will become ready
	started time.Duration // time of the hand-out

	causes *causeList // nil before the first cause
}

// link is the position of an entry in one list.
type link struct{ prev, next id }

// An entry has two links, because it is in two lists: one by class and one by age.
const (
	byClass = iota // the FIFO of its priority
	byAge          // the FIFO of all ready entries, or of all processed entries
)

// list is a FIFO whose links are in the entries. Removing from the middle is cheap, and no array keeps removed entries
// alive. The owner of a list counts its length if it needs it.
type list struct{ head, tail id }

func (t *table[K]) push(l *list, e *entry[K], by int) {
	e.links[by].prev = l.tail
	if l.tail == 0 {
		l.head = e.id
	} else {
		t.at(l.tail).links[by].next = e.id
	}
	l.tail = e.id
}

func (t *table[K]) remove(l *list, e *entry[K], by int) {
	at := e.links[by]
	if at.prev == 0 {
		l.head = at.next
	} else {
		t.at(at.prev).links[by].next = at.next
	}
	if at.next == 0 {
		l.tail = at.prev
	} else {
		t.at(at.next).links[by].prev = at.prev
	}
	e.links[by] = link{}
}
