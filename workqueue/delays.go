package workqueue

import (
	"math"
	"time"
)

const (
	// arity is the number of children of a heap node. Four slots fill one cache line, and a heap with four children per
	// node is half as deep as a binary one.
	arity = 4
	// pageLength is the number of slots that are allocated together. One array for a million slots would have to be
	// copied to grow, which blocks all callers for 50 ms.
	pageLength = 128
	// longestDelay keeps sums of times within a time.Duration.
	longestDelay = math.MaxInt64 / 2
	// ringBatch limits how many entries become ready under one hold of the lock. Otherwise a million entries that are
	// due together would block all other callers for long.
	ringBatch = 256
)

// dueSlot is an entry in the heap. It holds what orders the entries, so that a comparison need not read them.
type dueSlot struct {
	at    time.Duration
	order uint32 // order of the adds
	id    id
}

// before reports whether s is due before another slot. The order may overflow, so it compares the distance.
func (s dueSlot) before(other dueSlot) bool {
	return s.at < other.at || s.at == other.at && int32(s.order-other.order) < 0
}

// delays is a heap of the delayed entries, ordered by due time; entries with the same due time keep the order of their
// adds. An entry knows its index, so that it can be moved or removed.
type delays[K comparable] struct {
	table  *table[K]
	pages  []*[pageLength]dueSlot
	length int
	adds   uint32

	timer   *time.Timer   // calls Queue.ring
	timerAt time.Duration // when the timer fires; zero if it is stopped, or while ring runs
}

// add makes an entry due after a time, unless it is due earlier already.
func (d *delays[K]) add(e *entry[K], now, delay time.Duration) {
	due := now + delay
	if e.pending != delayed {
		d.adds++
		if d.length == len(d.pages)*pageLength {
			d.pages = append(d.pages, new([pageLength]dueSlot))
		}
		e.pending, e.heapIndex = delayed, int32(d.length)
		d.slot(d.length).order = d.adds
		d.length++
	} else if due >= e.ready {
		return
	}
	e.ready = due
	d.settle(int(e.heapIndex), dueSlot{due, d.slot(int(e.heapIndex)).order, e.id})
	d.setTimer(now)
}

// first returns the first entry if it is due now, and otherwise nil.
func (d *delays[K]) first(now time.Duration) *entry[K] {
	if d.length == 0 || d.slot(0).at > now {
		return nil
	}
	return d.table.at(d.slot(0).id)
}

func (d *delays[K]) slot(i int) *dueSlot { return &d.pages[uint(i)/pageLength][uint(i)%pageLength] }

// remove removes an entry from the heap, and stops the timer after the last one.
func (d *delays[K]) remove(e *entry[K]) {
	d.length--
	if moved := *d.slot(d.length); moved.id != e.id {
		d.settle(int(e.heapIndex), moved)
	}
	if d.length == 0 {
		d.timer.Stop()
		d.timerAt = 0
	}
}

// settle stores s at index i, or closer to the root, or farther from it.
func (d *delays[K]) settle(i int, s dueSlot) {
	for parent := (i - 1) / arity; i > 0 && s.before(*d.slot(parent)); parent = (i - 1) / arity {
		d.place(i, *d.slot(parent))
		i = parent
	}
	for {
		least, below := i, s
		for child := i*arity + 1; child < min(i*arity+1+arity, d.length); child++ {
			if c := *d.slot(child); c.before(below) {
				least, below = child, c
			}
		}
		d.place(i, below)
		if least == i {
			return
		}
		i = least
	}
}

func (d *delays[K]) place(i int, s dueSlot) {
	*d.slot(i) = s
	d.table.at(s.id).heapIndex = int32(i)
}

// trim releases the pages that a heap of room entries does not need.
func (d *delays[K]) trim(room int) {
	if needed := room/pageLength + 1; needed < len(d.pages) {
		d.pages = append(make([]*[pageLength]dueSlot, 0, needed), d.pages[:needed]...)
	}
}

// setTimer makes the timer fire when the first entry is due, or earlier: if an entry leaves the heap, the timer stays
// as it is unless the heap is empty. A timer that fires too early costs less than a timer that is often moved.
func (d *delays[K]) setTimer(now time.Duration) {
	if at := d.slot(0).at; d.timerAt == 0 || at < d.timerAt {
		d.timerAt = at
		d.timer.Reset(at - now)
	}
}

// ring makes entries ready that are due. The timer runs it on a goroutine of its own, so that Len and the metrics
// change even if no worker waits in Get.
func (q *Queue[K]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delays.timerAt = 0
	now := q.now()
	for range ringBatch {
		e := q.delays.first(now)
		if e == nil {
			break
		}
		q.delays.remove(e)
		q.becomeReady(e, e.ready)
	}
	if q.delays.length > 0 {
		q.delays.setTimer(now)
	}
}
