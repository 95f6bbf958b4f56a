package workqueue

import (
	"cmp"
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
// Add of an entry with nothing pending goes straight to the right column. ShutDown goes back to the left column. Get
// only takes queued entries, so an entry that is processed is never handed out a second time.

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
	o       Options
	limiter RateLimiter[K]
	base    time.Time // the times in entries count from here
	seed    maphash.Seed
	wake    chan struct{} // a token makes one waiting Get look again; see wakeOne

	mu         sync.Mutex // guards the fields below
	table      table[K]
	ready      readyQueue[K]
	delays     delays[K]
	trimmer    *time.Timer // calls trim; nil if no trim is planned
	inWork     int         // number of entries that are processed
	processing list        // these entries in the order of their hand-out; used for metrics only
	reruns     int         // number of entries whose pending is rerun
	waiting    int         // number of Gets that wait
	waking     int         // number of tokens that were sent to wake, and whose Gets have not looked since
	adds       uint64
	retries    uint64
	closed     bool
	drained    chan struct{} // closed when a drain ends; nil if no drain is under way
}

// New returns an empty queue. If there are several limiters, the longest of their delays counts (see MaxOf). With
// limiters, Options.Backoff and Options.Bucket must be zero; otherwise New panics. It corresponds to
// NewTypedRateLimitingQueueWithConfig of client-go.
func New[K comparable](o Options, limiters ...RateLimiter[K]) *Queue[K] {
	o.MaxCauses = cmp.Or(o.MaxCauses, defaultCauses)
	if len(limiters) == 0 {
		o.Backoff, o.Bucket = o.Backoff.orDefault(), o.Bucket.orDefault()
		limiters = []RateLimiter[K]{Exponential[K](o.Backoff), TokenBucket[K](o.Bucket)}
	} else if o.Backoff != (Backoff{}) || o.Bucket != (Bucket{}) {
		panic("workqueue: New got limiters, which conflict with Options.Backoff and Options.Bucket")
	}
	q := &Queue[K]{
		o:       o,
		limiter: MaxOf(limiters...),
		base:    time.Now().Add(-1), // so that no time in an entry is zero
		seed:    maphash.MakeSeed(),
		wake:    make(chan struct{}, 1),
		table:   newTable[K](),
	}
	q.ready = readyQueue[K]{table: &q.table, classes: make([]class, 1), ageing: ageing}
	q.delays = delays[K]{table: &q.table, timer: time.AfterFunc(longestDelay, q.ring)}
	q.delays.timer.Stop()
	return q
}

// Name returns Options.Name.
func (q *Queue[K]) Name() string { return q.o.Name }

// Options returns the options with their defaults. Backoff and Bucket are zero if New got limiters.
func (q *Queue[K]) Options() Options { return q.o }

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
	delay = min(delay, longestDelay)
	hash, now := q.hash(key), time.Duration(0)
	if delay > 0 || q.o.Metrics != nil {
		now = q.now()
	}
	caused := q.o.MaxCauses > 0 && item.Cause != (Cause{})
	q.mu.Lock()
	if !q.closed {
		e := q.table.obtain(key, hash)
		q.add(e, &item, now, delay)
		if caused {
			q.table.causesOf(e).add(&item.Cause, q.o.MaxCauses, e.processing)
		}
	}
	q.mu.Unlock()
}

// Forget makes the RateLimiter forget the failures of a key. It does not change what is pending.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues returns how many failures of a key the RateLimiter remembers.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// DueAt returns when the delay of a key ends. It is zero if the key is not delayed. client-go has nothing like it.
func (q *Queue[K]) DueAt(key K) time.Time {
	hash := q.hash(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.table.find(key, hash); e != nil && e.pending == delayed {
		return q.base.Add(e.ready)
	}
	return time.Time{}
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
	q.wakeOne()
	q.mu.Unlock()
	if q.o.Metrics != nil && q.o.Metrics.QueueDuration != nil {
		q.o.Metrics.QueueDuration(queued, work.Priority)
	}
	return work, nil
}

// Done gives a key back. If the key was added meanwhile, it becomes ready now, once. Done panics if the key is not
// being processed. Otherwise the next worker could get a key that another worker still processes.
func (q *Queue[K]) Done(key K) {
	hash, now := q.hash(key), time.Duration(0)
	if q.o.Metrics != nil {
		now = q.now()
	}
	q.mu.Lock()
	e := q.table.find(key, hash)
	if e == nil || !e.processing {
		q.mu.Unlock()
		panic(fmt.Sprintf("workqueue: Done of %v, which is not being processed", key))
	}
	started := e.started
	q.finish(e)
	q.mu.Unlock()
	if q.o.Metrics != nil && q.o.Metrics.WorkDuration != nil {
		q.o.Metrics.WorkDuration(now - started)
	}
}

// Len returns the number of ready keys. Delayed keys and keys that are being processed are not counted; see Stats.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.length
}

// wait releases the lock until a key may be ready, and returns with the lock held. Get must return its error.
func (q *Queue[K]) wait(ctx context.Context) (err error) {
	if q.closed && q.reruns == 0 {
		q.wakeOne()
		return ErrShutDown
	}
	q.waiting++
	q.mu.Unlock()
	select {
	case <-q.wake:
		q.mu.Lock()
		q.waking--
	case <-ctx.Done():
		q.mu.Lock()
		err = ctx.Err()
	}
	q.waiting--
	return err
}

// wakeOne wakes a waiting Get if fewer Gets are waking up than keys are ready. A key that becomes ready calls it, and
// so does a Get that leaves, because one call wakes only one Get. No wake-up is lost: while keys are ready and Gets
// wait, a token is in the channel, or a Get has received one and will look. A token has no addressee, so a Get that
// ends with its context takes none away. Meanwhile, a Get that never waited may take the key, because a running worker
// is cheaper than one that must be scheduled; the other Get then waits again.
//
// A sync.Cond would need a goroutine or an allocation to end a wait with a context.
func (q *Queue[K]) wakeOne() {
	needed := q.ready.length
	if q.closed && q.reruns == 0 {
		needed = q.waiting // they return ErrShutDown, because no further key will come
	}
	if q.waking < min(needed, q.waiting) {
		select {
		case q.wake <- struct{}{}:
			q.waking++
		default: // a token is there already
		}
	}
}

// start marks a ready entry as processed, fills in the worker's Work, and returns how long the entry was ready.
func (q *Queue[K]) start(e *entry[K], work *Work[K]) (queued time.Duration) {
	e.pending, e.processing = idle, true
	q.inWork++
	work.Key, work.Priority = e.key, e.priority
	if e.added|e.ready != 0 {
		work.Added, work.Ready = q.time(e.added), q.time(e.ready)
	}
	if e.causes != nil {
		work.Causes, work.CausesOmitted = e.causes.handOut()
	}
	if q.o.Metrics == nil {
		return 0
	}
	e.started = q.now()
	q.table.push(&q.processing, e, byAge)
	return e.started - e.ready
}

// finish ends the processing of an entry.
func (q *Queue[K]) finish(e *entry[K]) {
	e.processing = false
	q.inWork--
	if q.o.Metrics != nil {
		q.table.remove(&q.processing, e, byAge)
	}
	if e.causes != nil {
		e.causes.takeBack()
	}
	switch e.pending {
	case rerun:
		q.reruns--
		q.enqueue(e)
	case idle:
		q.release(e)
	}
}

// add merges an add into the pending adds of the entry.
func (q *Queue[K]) add(e *entry[K], item *Item, now, delay time.Duration) {
	if item.RateLimited || item.After > 0 {
		q.retries++
	}
	if e.pending == idle {
		e.priority, e.added = item.Priority, now
	} else if e.pending == queued && item.Priority > e.priority {
		q.ready.raise(e, item.Priority)
	} else {
		e.priority = max(e.priority, item.Priority)
	}
	switch {
	case e.pending == queued, e.pending == rerun:
	case delay > 0:
		q.delays.add(e, now, delay)
	default:
		if e.pending == delayed {
			q.delays.remove(e)
		}
		q.becomeReady(e, now)
	}
}

// becomeReady counts an add whose time has come, and makes its entry ready.
func (q *Queue[K]) becomeReady(e *entry[K], at time.Duration) {
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
	q.wakeOne()
}

// dropPending removes the pending request and its causes from an entry that is in neither the heap nor the lists.
func (q *Queue[K]) dropPending(e *entry[K]) {
	e.pending = idle
	if e.causes != nil {
		e.causes.drop(e.processing)
	}
	if !e.processing {
		q.release(e)
	}
}

// release removes an entry that is neither pending nor processed.
func (q *Queue[K]) release(e *entry[K]) {
	q.table.release(e)
	q.planTrim()
	if q.table.used == 0 {
		q.endDrain()
	}
}

// hash needs no lock. Like a Go map, it panics if K is an interface type and the key is not comparable.
func (q *Queue[K]) hash(key K) uint32 { return uint32(maphash.Comparable(q.seed, key)) }

func (q *Queue[K]) now() time.Duration { return time.Since(q.base) }

// time converts a time that counts from base, where zero means that the queue did not read the clock.
func (q *Queue[K]) time(sinceBase time.Duration) time.Time {
	if sinceBase == 0 {
		return time.Time{}
	}
	return q.base.Add(sinceBase)
}
