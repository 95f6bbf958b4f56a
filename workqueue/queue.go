package workqueue

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// The states of a key's entry:
//
//	                nothing pending           waiting               ready
//
//	not processed   (no entry) ──AddAfter──▶ delayed ──due, Add──▶ queued ──┐
//	                    ▲                       ▲                     ▲     │
//	                    │ Done                  │ Done                │ Done│ Get
//	                    │                       │                     │     │
//	processed         idle ─────AddAfter───▶ delayed ──due, Add──▶ rerun    │
//	                    ▲                                                   │
//	                    └───────────────────────────────────────────────────┘
//
// Add of an entry with nothing pending goes straight to the right column. Cancel goes back to the left column. Get only
// takes queued entries, so an entry that is processed is never handed out a second time.

// Options are the settings of a queue. The zero value is what client-go calls its default controller queue.
type Options struct {
	// Name distinguishes queues in metrics; see Queue.Name. It may be empty.
	Name string

	// Backoff and Bucket are the rate limits of AddRateLimited; the longer of their delays counts. Both must be zero if
	// New gets limiters.
	Backoff Backoff
	Bucket  Bucket

	// MaxCauses is the number of causes that a key keeps when adds coalesce. The key keeps the first causes and counts
	// the others. Zero means 4. A negative number means that no causes are kept.
	MaxCauses int

	// Metrics receives measured times. If it is nil, the queue reads the clock only for delays.
	Metrics *Metrics
}

// Item tells how to add a key. The zero value is a plain Add. It corresponds to priorityqueue.AddOpts of
// controller-runtime.
type Item struct {
	// After is the delay from now. Zero or less means no delay.
	After time.Duration
	// Priority orders the ready keys: the key with the higher number goes first.
	Priority int
	// RateLimited counts a failure of the key and delays the key as the RateLimiter says. With After, the longer delay
	// counts; in controller-runtime it is the shorter.
	RateLimited bool
	// Cause tells why the key is added. A zero Cause is ignored.
	Cause Cause
}

// Work is a key that was handed out, with its causes. The worker must give it back with Done(work.Key).
type Work[K comparable] struct {
	Key K
	// Causes are the first causes of the adds that this hand-out answers, oldest first. The queue owns the slice and
	// reuses it after Done; clone it to keep it longer.
	Causes []Cause
	// CausesOmitted counts the causes beyond Options.MaxCauses.
	CausesOmitted int
	// Priority is the highest priority of the adds that this hand-out answers.
	Priority int
	// Added is the time of the first of these adds, and Ready the time when the key was due. Each is zero if the queue
	// did not read the clock: Options.Metrics is nil, and the key was not delayed or an Add ended its delay. Cause.At
	// does not depend on this.
	Added, Ready time.Time
}

// Queue hands out keys to workers, each key to one worker at a time, and no more often than necessary.
//
// A key has at most one pending hand-out. Adds before it coalesce into it: the earliest time and the highest priority
// win, and it carries the causes of all. A key that is added while it is processed is handed out again after its Done.
//
// Queue corresponds to TypedRateLimitingInterface of client-go and to PriorityQueue of controller-runtime, in one type.
// It owns no goroutine and needs no Run.
type Queue[K comparable] struct {
	name      string
	limiter   RateLimiter[K]
	maxCauses int
	metrics   *Metrics
	base      time.Time // stamps count from here
	seed      maphash.Seed

	mu         sync.Mutex // guards the fields below
	slab       slab[K]
	table      table[K]
	ready      readyQueue[K]
	delays     delayHeap[K]
	alarm      alarm
	trimAt     stamp // time of the next trim; zero if no trim is planned
	inWork     int   // number of entries that are processed
	processing list  // these entries in the order of their hand-out; used for metrics only
	reruns     int   // number of entries whose pending is rerun
	waiters    waiters
	adds       uint64
	retries    uint64
	closed     bool
	drain      *drain // nil if no drain is under way
}

// New returns an empty queue. If there are several limiters, the longest of their delays counts (see MaxOf). With
// limiters, Options.Backoff and Options.Bucket must be zero; otherwise New panics. It corresponds to
// NewTypedRateLimitingQueueWithConfig of client-go.
func New[K comparable](o Options, limiters ...RateLimiter[K]) *Queue[K] {
	q := &Queue[K]{
		name:      o.Name,
		limiter:   limiterOf(o, limiters),
		maxCauses: max(o.MaxCauses, 0),
		metrics:   o.Metrics,
		base:      time.Now().Add(-1), // so that no stamp is zero
		seed:      maphash.MakeSeed(),
	}
	if o.MaxCauses == 0 {
		q.maxCauses = defaultCauses
	}
	q.table, q.delays.slab = newTable(&q.slab), &q.slab
	q.ready = readyQueue[K]{slab: &q.slab, classes: make([]class, 1), ageing: ageing}
	q.alarm.ring = q.ring
	return q
}

// Name returns Options.Name.
func (q *Queue[K]) Name() string { return q.name }

// Add makes a key ready now, with priority 0 and without a cause.
func (q *Queue[K]) Add(key K) { q.AddWith(key, Item{}) }

// AddAfter makes a key ready after the given time, unless it becomes ready earlier. Zero or less means now.
func (q *Queue[K]) AddAfter(key K, after time.Duration) { q.AddWith(key, Item{After: after}) }

// AddRateLimited counts a failure of a key and makes it ready after the delay that the RateLimiter returns.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, Item{RateLimited: true}) }

// AddWith adds a key. It never blocks. After ShutDown it does nothing. An add coalesces with the pending adds of the
// key: the earlier time and the higher priority win, and both causes are kept. So an Add of a delayed key ends the
// delay; in client-go, the key would be handed out twice.
func (q *Queue[K]) AddWith(key K, item Item) {
	delay := max(item.After, 0)
	if item.RateLimited {
		delay = max(delay, q.limiter.When(key)) // without the lock, because it may be user code
	}
	hash, now := q.hash(key), stamp(0)
	if delay > 0 || q.metrics != nil {
		now = q.now()
	}
	caused := q.maxCauses > 0 && !item.Cause.isZero()
	q.mu.Lock()
	if !q.closed {
		e := q.table.obtain(key, hash)
		q.add(e, &item, now, delay)
		if caused {
			q.slab.note(e, &item.Cause, q.maxCauses)
		}
	}
	q.mu.Unlock()
}

// Forget makes the RateLimiter forget the failures of a key. It does not change what is pending.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues returns how many failures of a key the RateLimiter remembers.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// Cancel removes the delayed add of a key, with its causes, and reports whether there was one. It changes neither a key
// that is already ready nor the failures that the RateLimiter counted. client-go has nothing like it.
func (q *Queue[K]) Cancel(key K) bool {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	_, e := q.table.find(key, hash)
	if e == nil || e.pending != delayed {
		return false
	}
	q.undelay(e)
	q.dropPending(e)
	return true
}

// Get blocks until a key is ready and hands it out. The caller must give it back with Done. The key with the highest
// priority goes first; within a priority, the key that entered it first. At least every eighth time, it is the key that
// has been ready the longest. Get returns the context's error when the context has ended. It returns ErrShutDown when
// the queue is shut down, no key is ready, and no key that is being processed will be ready again.
func (q *Queue[K]) Get(ctx context.Context) (work Work[K], err error) {
	if err = ctx.Err(); err != nil {
		return work, err
	}
	q.mu.Lock()
	for q.ready.length == 0 {
		if err = q.wait(ctx); err != nil {
			q.mu.Unlock()
			return work, err
		}
	}
	queued := q.start(q.ready.pop(), &work)
	q.mu.Unlock()
	if q.metrics != nil {
		q.metrics.observeQueued(queued, work.Priority)
	}
	return work, nil
}

// Done gives a key back. If the key was added meanwhile, it becomes ready now, once. Done panics if the key is not
// being processed. Otherwise the next worker could get a key that another worker still processes.
func (q *Queue[K]) Done(key K) {
	hash, now := q.hash(key), stamp(0)
	if q.metrics != nil {
		now = q.now()
	}
	q.mu.Lock()
	slot, e := q.table.find(key, hash)
	if e == nil || !e.processing {
		q.mu.Unlock()
		panic(fmt.Sprintf("workqueue: Done of %v, which is not being processed", key))
	}
	started := e.started
	q.finish(slot, e)
	q.mu.Unlock()
	if q.metrics != nil {
		q.metrics.observeWorked(time.Duration(now - started))
	}
}

// Len returns the number of ready keys. Delayed keys and keys that are being processed are not counted; see Stats.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.length
}

// wait releases the lock until a key may be ready, and returns with the lock held. Get must return its error.
func (q *Queue[K]) wait(ctx context.Context) error {
	if q.closed && q.reruns == 0 {
		return ErrShutDown
	}
	w := q.waiters.get()
	q.waiters.park(w)
	q.mu.Unlock()
	select {
	case <-w.wake:
		q.mu.Lock()
		q.waiters.comeBack(w)
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		q.waiters.giveUp(w, q.ready.length)
		return ctx.Err()
	}
}

// start marks a ready entry as processed, fills in the worker's Work, and returns how long the entry was ready.
func (q *Queue[K]) start(e *entry[K], work *Work[K]) (queued time.Duration) {
	e.pending, e.processing = idle, true
	q.inWork++
	e.held, e.causes = e.causes, e.held
	work.Key, work.Priority = e.key, e.priority
	if e.added|e.ready != 0 {
		work.Added, work.Ready = e.added.time(q.base), e.ready.time(q.base)
	}
	if e.held != nil {
		work.Causes, work.CausesOmitted = e.held.kept, e.held.omitted
	}
	if q.metrics == nil {
		return 0
	}
	e.started = q.now()
	q.slab.push(&q.processing, e, byAge)
	return time.Duration(e.started - e.ready)
}

// finish ends the processing of an entry, which is in the given slot of the table.
func (q *Queue[K]) finish(slot int, e *entry[K]) {
	e.processing = false
	q.inWork--
	if q.metrics != nil {
		q.slab.remove(&q.processing, e, byAge)
	}
	if e.held != nil {
		e.held.reset()
		if e.causes == nil {
			e.causes, e.held = e.held, nil // otherwise the next add would need a second list
		}
	}
	switch e.pending {
	case rerun:
		q.reruns--
		q.enqueue(e)
		if q.closed {
			q.waiters.wakeAll() // if no further key will come, they return ErrShutDown
		}
	case idle:
		q.release(slot, e)
		q.endDrain()
	}
}

// add merges an add into the pending adds of the entry.
func (q *Queue[K]) add(e *entry[K], item *Item, now stamp, delay time.Duration) {
	if item.RateLimited || item.After > 0 {
		q.retries++
	}
	if e.pending == idle {
		e.priority, e.added = item.Priority, now
	} else if item.Priority > e.priority {
		q.raise(e, item.Priority)
	}
	if delay > 0 {
		q.addLater(e, now, delay)
	} else if e.pending == idle {
		q.becomeReady(e, now)
	} else if e.pending == delayed {
		q.undelay(e)
		q.becomeReady(e, now)
	}
}

// raise gives an entry a higher priority.
func (q *Queue[K]) raise(e *entry[K], priority int) {
	if e.pending == queued {
		q.ready.raise(e, priority)
	} else {
		e.priority = priority
	}
}

// addLater makes an entry due after a time, unless it becomes ready earlier.
func (q *Queue[K]) addLater(e *entry[K], now stamp, delay time.Duration) {
	due := now.add(delay)
	switch {
	case e.pending == idle:
		e.pending, e.ready = delayed, due
		q.delays.push(e, due)
	case e.pending == delayed && due < e.ready:
		e.ready = due
		q.delays.advance(e, due)
	default:
		return
	}
	q.alarm.set(q.delays.first(), now)
}

// becomeReady counts an add whose time has come, and makes its entry ready.
func (q *Queue[K]) becomeReady(e *entry[K], at stamp) {
	q.adds++
	e.ready = at
	if e.processing {
		e.pending = rerun
		q.reruns++
		return
	}
	q.enqueue(e)
}

func (q *Queue[K]) enqueue(e *entry[K]) {
	e.pending = queued
	q.ready.push(e)
	q.waiters.wakeFor(q.ready.length)
}

// dropPending removes the pending request of an entry that is in neither the heap nor the lists.
func (q *Queue[K]) dropPending(e *entry[K]) {
	e.dropPending()
	if !e.processing {
		q.release(q.table.slotOf(e), e)
	}
}

// hash needs no lock. Like a Go map, it panics if K is an interface type and the key is not comparable.
func (q *Queue[K]) hash(key K) uint32 { return uint32(maphash.Comparable(q.seed, key)) | occupied }

func (q *Queue[K]) now() stamp { return stamp(time.Since(q.base)) }
