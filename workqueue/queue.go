package workqueue

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// Options are the settings of a queue. The zero value is what client-go calls its default controller queue.
type Options struct {
	// Name tells queues apart in metrics; see Queue.Name. It may be empty.
	Name string

	// Backoff and Bucket are the rate limits of AddRateLimited: the longer of the two delays counts. Both must be zero
	// when New is given limiters.
	Backoff Backoff
	Bucket  Bucket

	// MaxCauses is how many causes a key keeps when adds coalesce: the first ones; the others are counted. Zero means
	// 4, a negative number none.
	MaxCauses int

	// Ageing keeps low priorities from starving: of any so many turns in a row, one at least goes to the key that has
	// been ready the longest. Zero means 8; one makes a plain FIFO of the queue; a negative number panics.
	Ageing int

	// Metrics switches the measuring of times on. Nil reads no clock but for delays.
	Metrics *Metrics
}

// Item is how a key is added. The zero value is a plain Add.
// It corresponds to priorityqueue.AddOpts of controller-runtime.
type Item struct {
	// After delays the key by so much from now. Zero or less is no delay.
	After time.Duration
	// Priority is higher for what is more urgent.
	Priority int
	// RateLimited delays the key by what the queue's RateLimiter says, and makes it count the failure. With After the
	// longer of the two counts. (In controller-runtime it is the shorter.)
	RateLimited bool
	// Cause says why; zero says nothing.
	Cause Cause
}

// Work is a key that was handed out, and what is known of why. It must be given back with Done(work.Key).
type Work[K comparable] struct {
	Key K
	// Causes are the first causes of the adds that this hand-out answers, oldest first. The slice belongs to the queue
	// and is reused after Done: whoever needs it longer clones it.
	Causes []Cause
	// CausesOmitted counts the causes beyond Options.MaxCauses.
	CausesOmitted int
	// Priority is the highest of the adds that this hand-out answers.
	Priority int
	// Added is when the first of these adds was made, and Ready when the key was due. Each is zero where the queue had
	// no need to read the clock: Options.Metrics is nil, and the key was not delayed, or an Add took the waiting away.
	// Cause.At is independent of it.
	Added, Ready time.Time
}

// Queue hands keys out to workers, each key to one worker at a time, and never more often than it must.
//
// Of a key there is at most one pending hand-out: adds that come before it coalesce into it. It is due at the earliest
// time that any of them asked for, has the highest priority that any of them gave, and carries their causes. A key that
// is added while it is processed is handed out again after its Done.
//
// It corresponds to TypedRateLimitingInterface of client-go and to PriorityQueue of controller-runtime, in one type.
// It owns no goroutine, and needs no Run.
type Queue[K comparable] struct {
	name      string
	limiter   RateLimiter[K]
	maxCauses int
	metrics   *Metrics
	base      time.Time // what stamps count from
	seed      maphash.Seed

	mu         sync.Mutex // guards the fields below
	slab       slab[K]
	table      table[K]
	ready      readyQueue[K]
	delays     delayHeap[K]
	alarm      alarm
	trimAt     stamp // when room is to be given back; zero if none is
	inWork     int   // entries that are processed
	processing list  // these, who was handed out first first; kept for the metrics only
	reruns     int   // entries whose pending is rerun
	waiters    waiters
	adds       uint64
	retries    uint64
	closed     bool
	drain      *drain // nil when nobody drains
}

// New returns an empty queue. With limiters, the longest delay that any of them asks for counts (see MaxOf), and
// Options.Backoff and Options.Bucket must be zero.
// It corresponds to NewTypedRateLimitingQueueWithConfig of client-go.
func New[K comparable](o Options, limiters ...RateLimiter[K]) *Queue[K] {
	if o.Ageing < 0 {
		panic("workqueue: Options.Ageing is negative, and without ageing low priorities would starve")
	}
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
	q.ready.ageing = o.Ageing
	if o.Ageing == 0 {
		q.ready.ageing = defaultAgeing
	}
	q.table, q.ready.slab, q.delays.slab = newTable(&q.slab), &q.slab, &q.slab
	q.alarm.ring = q.ring
	return q
}

// Name returns Options.Name.
func (q *Queue[K]) Name() string { return q.name }

// Add makes a key ready, now, at priority zero and without a cause.
func (q *Queue[K]) Add(key K) { q.AddWith(key, Item{}) }

// AddAfter makes a key ready after a time, unless it will be sooner; a time of zero or less is now.
func (q *Queue[K]) AddAfter(key K, after time.Duration) { q.AddWith(key, Item{After: after}) }

// AddRateLimited counts a failure of a key and makes it ready when its RateLimiter says.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, Item{RateLimited: true}) }

// AddWith adds a key. It never blocks. After ShutDown it does nothing.
// An add coalesces with what is pending for the key: the earlier time, the higher priority and both causes win. So an
// Add of a key that waits takes the waiting away, unlike in client-go, where the key is handed out twice.
func (q *Queue[K]) AddWith(key K, item Item) {
	delay := max(item.After, 0)
	if item.RateLimited {
		delay = max(delay, q.limiter.When(key)) // without the lock: it may be the user's code
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

// Forget makes the RateLimiter forget the failures of a key. What is pending for it stays.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues returns how many failures of a key the RateLimiter remembers.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// Cancel takes back the delayed add of a key, with its causes, and says whether there was one. A key that is ready
// already stays so, and so does what the RateLimiter remembers.
// Nothing in client-go corresponds to it.
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

// Get waits for a key to be ready and hands it out; the caller must give it back with Done. The most urgent class
// goes first, within it the key that came to it first; but see Options.Ageing. Get returns the context's error when
// the context has ended, and ErrShutDown when the queue is shut down, nothing is ready, and nothing that is processed
// will be ready again.
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

// Done gives a key back. If it was added meanwhile it is ready now, once. Done of a key that is not being processed
// panics: were it let pass, the next worker could be given a key that another one still works on.
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

// Len returns the number of keys that are ready. Keys that wait, or are processed, are not among them; see Stats.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.length
}

// wait gives the lock up until something may be ready. It returns an error, with the lock, if Get should.
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

// start makes a ready entry one that is processed, tells the worker of it, and returns how long it was ready.
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

// finish ends the processing of an entry, which has the given slot of the table.
func (q *Queue[K]) finish(slot int, e *entry[K]) {
	e.processing = false
	q.inWork--
	if q.metrics != nil {
		q.slab.remove(&q.processing, e, byAge)
	}
	if e.held != nil {
		e.held.reset()
		if e.causes == nil {
			e.causes, e.held = e.held, nil // or the next add would need a second list
		}
	}
	switch e.pending {
	case rerun:
		q.reruns--
		q.enqueue(e)
		if q.closed && q.reruns == 0 {
			q.waiters.wakeAll() // all but one will find that nothing comes any more
		}
	case idle:
		q.release(slot, e)
		q.endDrain()
	}
}

// add joins an add to what is pending for the entry.
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

// addLater makes an entry due after a time, unless it will be ready sooner.
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

// becomeReady counts an add whose time has come.
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

// dropPending takes back what was asked for an entry that is in neither the heap nor the lists.
func (q *Queue[K]) dropPending(e *entry[K]) {
	e.dropPending()
	if !e.processing {
		q.release(q.table.slotOf(e), e)
	}
}

// hash needs no lock. It panics where a Go map would: when K is an interface type and the key is not comparable.
func (q *Queue[K]) hash(key K) uint32 { return uint32(maphash.Comparable(q.seed, key)) | occupied }

func (q *Queue[K]) now() stamp { return stamp(time.Since(q.base)) }
