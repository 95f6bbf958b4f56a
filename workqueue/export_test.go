package workqueue

import (
	"slices"
	"strings"
	"time"
)

// StopTimer stops the queue's timers and reports whether one was running.
func (q *Queue[K]) StopTimer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delays.timer.Stop() || q.trimmer != nil && q.trimmer.Stop()
}

// Chunks returns the number of chunks in the queue's table.
func (q *Queue[K]) Chunks() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.table.chunks)
}

// Room returns for how many entries, slots of the table and delays the queue has memory.
func (q *Queue[K]) Room() (entries, slots, delays int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.table.room, len(q.table.slots), len(q.delays.pages) * pageLength
}

// SetDelayedAdds sets the number of the adds with a delay.
func (q *Queue[K]) SetDelayedAdds(n uint32) { q.delays.adds = n }

// NewAgeing returns a queue with another ageing: one turns the queue into a FIFO.
func NewAgeing[K comparable](ageing int, o Options, limiters ...RateLimiter[K]) *Queue[K] {
	q := New(o, limiters...)
	q.ready.ageing = ageing
	return q
}

// Delay returns the delay after the given number of failures, at least 1. It knows no defaults.
func (b Backoff) Delay(failures int) time.Duration { return b.delay(failures) }

// Memory appends everything in the queue that decides what it does next, without times: the keys are the entries in
// the order of the lists and of the heap, and those in work. The queue must have Options.Metrics.
func (q *Queue[K]) Memory(to []byte, name func(K) byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	add := func(e *entry[K]) {
		to = append(to, name(e.key), byte(e.pending), byte(e.priority))
		if e.causes != nil {
			n := 0
			for i := range e.causes.first {
				if e.causes.first[i] != (Cause{}) {
					n++
				}
			}
			if m := e.causes.more; m != nil {
				n += 2*len(m.all) + 8*int(m.held) + 64*min(int(m.omitted), 3)
			}
			to = append(to, byte(n))
		}
	}
	walk := func(l list, by int) {
		for i := l.head; i != 0; i = q.table.at(i).links[by].next {
			add(q.table.at(i))
		}
		to = append(to, '|')
	}
	walk(q.ready.ages, byAge)
	for _, c := range q.ready.classes {
		walk(c.entries, byClass)
	}
	var work []string // in no order, because workers that wake together take their keys in any order
	for i, from := q.processing.head, len(to); i != 0; i = q.table.at(i).links[byAge].next {
		add(q.table.at(i))
		work, to = append(work, string(to[from:])), to[:from]
	}
	slices.Sort(work)
	to = append(to, strings.Join(work, "|")...)
	for i := range q.delays.length {
		s := q.delays.slot(i)
		add(q.table.at(s.id))
		to = append(to, byte((s.at-q.now())/time.Second))
	}
	if q.delays.timerAt != 0 {
		to = append(to, byte((q.delays.timerAt-q.now())/time.Second))
	}
	flags := byte(q.ready.passed)
	if q.closed {
		flags |= 128
	}
	if q.drained != nil {
		flags |= 64
	}
	return append(to, '#', byte(q.table.used), byte(q.inWork), byte(q.reruns), byte(q.waiting), byte(q.waking), flags)
}
