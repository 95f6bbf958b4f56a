package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// process handles one batch. It calls user code before and after handleDeltas, without the lock.
func (p *pipeline[T]) process(batch deltafifo.Batch[T]) {
	p.observeMutations(batch)
	popped := p.traceTime()
	stored := p.handleDeltas(batch)
	p.deliverReady()
	if p.mutations != nil {
		p.mutations.report(false)
	}
	p.tell(batch, popped, stored)
}

// handleDeltas applies a batch to the cache, publishes it and appends its changes to the backlogs. It is the only
// writer of the cache. It holds the informer's lock throughout, so that a handler that joins at the same time gets the
// batch either in its replay or as changes. Index functions and the conditions of WaitUntil are the only user code
// here. stored is the time for a trace: a handler may get the batch before handleDeltas returns.
func (p *pipeline[T]) handleDeltas(batch deltafifo.Batch[T]) (stored time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.indexer.ResourceVersion()
	changes, snapshot := p.store(batch)
	stored = p.traceTime()
	p.notify(changes, snapshot, batch)
	p.wakeWaiters()
	if len(batch.Objects) > 0 || batch.InitialList || snapshot.ResourceVersion() != before { // not a resync alone
		p.heardAt = batch.Since
	}
	return stored
}

// changes are the changes of one batch, as handlers get them.
type changes[T api.Object] struct {
	// initial are additions by the first list that are missing in a replay of the snapshot after the batch, because the
	// object has changed again since. later are all changes after the first list.
	initial, later []api.Change[T]
	// notified are the keys in the snapshot that a replay must skip, because they have a change. It is nil if the batch
	// causes no replay.
	notified map[api.Key]struct{}
	replays  bool // the first list fills an empty cache, and handlers get a replay of it
	at       time.Time
	capacity int // of later, which is allocated with the first one
}

// add adds a change. initial reports that the first list ends with it, or with a later change of the object.
func (c *changes[T]) add(key api.Key, n api.Change[T], initial bool) {
	if initial && c.replays {
		c.initial = append(c.initial, n)
	} else {
		if c.later == nil {
			c.later = make([]api.Change[T], 0, c.capacity)
		}
		c.later = append(c.later, n)
	}
	if c.notified == nil {
		return
	}
	if n.Type == api.Deleted {
		delete(c.notified, key)
	} else {
		c.notified[key] = struct{}{}
	}
}

// store applies a batch in one transaction of the cache.
func (p *pipeline[T]) store(batch deltafifo.Batch[T]) (changes[T], *cache.Snapshot[T]) {
	c := changes[T]{at: batch.Since, capacity: len(batch.Objects)}
	if batch.InitialList && p.heardAt.IsZero() { // no handler has got anything
		c.replays, c.capacity = true, 0 // most objects are in the replay
	}
	if batch.InitialList || batch.Resync {
		c.notified = map[api.Key]struct{}{}
	}
	txn := p.indexer.Begin()
	if c.replays {
		txn.Fill(listed(batch)) // the replay notifies of them
	}
	for _, object := range batch.Objects {
		if c.replays && isListed(object) {
			continue
		}
		last := lastInitial(object.Changes)
		for n, change := range object.Changes {
			c.apply(txn, object.Key, change, n <= last)
		}
	}
	for _, key := range batch.Forgotten {
		txn.Delete(key)
		delete(c.notified, key)
	}
	return c, txn.CommitWith(batch.ResourceVersion, batch.Note)
}

// listed returns the objects that have not changed since the first list.
func listed[T any](batch deltafifo.Batch[T]) []T {
	objects := make([]T, 0, len(batch.Objects))
	for _, object := range batch.Objects {
		if isListed(object) {
			objects = append(objects, object.Changes[0].Object)
		}
	}
	return objects
}

func isListed[T any](object deltafifo.ObjectChanges[T]) bool {
	return len(object.Changes) == 1 && object.Changes[0].InitialList
}

// lastInitial returns the index of the last change by a first list, or -1. If several scopes list an object, it may
// have been deleted between their lists.
func lastInitial[T any](changes []api.Change[T]) int {
	for n := len(changes) - 1; n >= 0; n-- {
		if changes[n].InitialList {
			return n
		}
	}
	return -1
}

// apply applies one change. The queue has decided what it is, and the cache has the state that the queue compared it
// with, so nothing is left to decide here.
func (c *changes[T]) apply(txn *cache.Txn[T], key api.Key, change api.Change[T], initial bool) {
	if change.Type == api.Deleted {
		txn.Delete(key)
	} else {
		txn.Set(change.Object)
	}
	c.add(key, change, initial)
}

// notify appends the changes to the backlogs.
func (p *pipeline[T]) notify(c changes[T], snapshot *cache.Snapshot[T], batch deltafifo.Batch[T]) {
	if batch.InitialList {
		close(p.events.synced)
	}
	if c.replays {
		p.broadcast(&group[T]{replay: snapshot, skip: c.notified, changes: c.initial, at: c.at, completes: true})
	}
	if completes := batch.InitialList && !c.replays; len(c.later) > 0 || completes {
		p.broadcast(&group[T]{changes: c.later, at: c.at, completes: completes})
	}
	if batch.Resync {
		p.notifyResync(c, snapshot)
	}
}

// broadcast appends a group to all backlogs. It collects the handlers that process can call itself.
func (p *pipeline[T]) broadcast(g *group[T]) {
	for _, l := range p.handlers.all {
		if pending := l.push(g); l.nonBlocking && pending <= fewNotifications {
			p.handlers.ready = append(p.handlers.ready, l)
		} else {
			l.wakeUp()
		}
	}
}

// fewNotifications is the largest backlog that process delivers itself. A longer one would delay the next batch.
const fewNotifications = 16

// deliverReady calls the handlers that do not block, without a lock. If the goroutine of such a handler is delivering,
// it delivers the new changes too.
func (p *pipeline[T]) deliverReady() {
	for _, l := range p.handlers.ready {
		if l.pending() <= fewNotifications && l.delivery.TryLock() { // a resync may have followed
			l.deliverAll()
		} else {
			l.wakeUp()
		}
	}
	clear(p.handlers.ready)
	p.handlers.ready = p.handlers.ready[:0]
}

// notifyResync appends a resync to the backlogs of the handlers that are due. It skips the keys that c notifies of: all
// of them if c replays the cache.
func (p *pipeline[T]) notifyResync(c changes[T], snapshot *cache.Snapshot[T]) {
	now := time.Now()
	g := &group[T]{replay: snapshot, resync: true, skip: c.notified, at: now}
	for _, l := range p.handlers.all {
		if !l.resync.due(now) {
			continue
		}
		l.resync.advance(now)
		if !c.replays {
			l.push(g)
			l.wakeUp()
		}
	}
	p.scheduleResync(now)
}
