package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// process handles one batch, and runs what is not to run under the lock.
func (i *Informer[T]) process(batch deltafifo.Batch[T]) {
	i.mutations.observe(batch)
	snapshot := i.handleDeltas(batch)
	i.mutations.checkIfDue()
	if i.o.OnBatch != nil {
		i.o.OnBatch(batch, snapshot)
	}
	if len(batch.Objects) > 0 {
		i.batches.Tell(Stored{Objects: len(batch.Objects), Received: batch.Since})
	}
}

// Stored is a batch of changes that is in the cache. It is Options.OnBatch without the objects, and their type.
type Stored struct {
	Objects  int       // that changed
	Received time.Time // when the first of these changes came
}

// ObserveBatches has f called with every batch of changes from now on, once it is in the cache, for metrics and traces; a
// bookmark or a resync is none. The next batch waits for f. The function that is returned ends that.
func (i *Informer[T]) ObserveBatches(f func(Stored)) (stop func()) { return i.batches.Add(f) }

// handleDeltas applies a batch to the cache, publishes it, and tells the listeners. It is the one writer of the cache.
// All of it happens under the informer's lock, so that a handler which joins at the same time sees the batch either in
// what is replayed to it or as changes, and never both or neither. No user code runs here but index functions.
func (i *Informer[T]) handleDeltas(batch deltafifo.Batch[T]) *cache.Snapshot[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	changes, snapshot := i.apply(batch)
	i.tell(changes, snapshot, batch)
	i.wakeWaiters(snapshot.ResourceVersion())
	if len(batch.Objects) > 0 {
		i.heard = batch.Since
	}
	return snapshot
}

// changes is what a batch did to the cache, as it is told to handlers.
type changes[T api.Object] struct {
	// initial are additions by the first list that a replay of the state after the batch does not stand for, because
	// the object has changed again since; notifications is everything after the first list.
	initial, notifications []Notification[T]
	// touched are the keys, among those that are there after the batch, that handlers need not be told of in a replay,
	// because there is a notification. It is nil unless there will be a replay.
	touched map[api.Key]struct{}
	at      time.Time
	room    int // for so many notifications, once there is one
}

// add notes a notification.
func (c *changes[T]) add(key api.Key, n Notification[T]) {
	n.At = c.at
	if n.InitialList {
		c.initial = append(c.initial, n)
	} else {
		if c.notifications == nil {
			c.notifications = make([]Notification[T], 0, c.room)
		}
		c.notifications = append(c.notifications, n)
	}
	if c.touched == nil {
		return
	}
	if n.Type == Delete {
		delete(c.touched, key)
	} else {
		c.touched[key] = struct{}{}
	}
}

// apply carries a batch out in one transaction of the cache.
func (i *Informer[T]) apply(batch deltafifo.Batch[T]) (changes[T], *cache.Snapshot[T]) {
	c := changes[T]{at: batch.Since, room: len(batch.Objects)}
	if batch.InitialList {
		c.room = 0 // the replay tells of most
	}
	if batch.InitialList || batch.Resync {
		c.touched = map[api.Key]struct{}{}
	}
	txn := i.indexer.Begin()
	if batch.InitialList {
		txn.Fill(listed(batch)) // the replay tells of them
	}
	for _, object := range batch.Objects {
		if batch.InitialList && isListed(object) {
			continue
		}
		for _, delta := range object.Deltas {
			c.apply(txn, object.Key, delta)
		}
	}
	return c, txn.Commit(batch.ResourceVersion)
}

// listed returns the objects that are as the first list had them.
func listed[T any](batch deltafifo.Batch[T]) []T {
	objects := make([]T, 0, len(batch.Objects))
	for _, object := range batch.Objects {
		if isListed(object) {
			objects = append(objects, object.Deltas[0].Object)
		}
	}
	return objects
}

func isListed[T any](object deltafifo.ObjectDeltas[T]) bool {
	return len(object.Deltas) == 1 && object.Deltas[0].InitialList
}

// apply carries one delta out. What the cache holds decides what it is called, whatever the delta says.
func (c *changes[T]) apply(txn *cache.Txn[T], key api.Key, d deltafifo.Delta[T]) {
	if d.Type == deltafifo.Deleted {
		if _, existed := txn.Delete(key); existed {
			c.add(key, Notification[T]{Type: Delete, Object: d.Object, FinalStateUnknown: d.FinalStateUnknown})
		}
		return
	}
	if old, existed := txn.Set(d.Object); existed {
		c.add(key, Notification[T]{Type: Update, Object: d.Object, Old: old})
		return
	}
	c.add(key, Notification[T]{Type: Add, Object: d.Object, InitialList: d.InitialList})
}

// tell appends what happened to the backlogs.
func (i *Informer[T]) tell(c changes[T], snapshot *cache.Snapshot[T], batch deltafifo.Batch[T]) {
	if batch.InitialList {
		close(i.synced)
		i.broadcast(&group[T]{replay: snapshot, skip: c.touched, notifications: c.initial, at: c.at, completes: true})
	}
	if len(c.notifications) > 0 {
		i.broadcast(&group[T]{notifications: c.notifications, at: c.at})
	}
	if batch.Resync && !batch.InitialList { // the first list tells of everything anyway
		i.resyncDue(snapshot, c.touched)
	}
}

func (i *Informer[T]) broadcast(g *group[T]) {
	for _, l := range i.listeners {
		l.push(g)
	}
}

// resyncDue tells the handlers that asked for it of everything that they were not just told of.
func (i *Informer[T]) resyncDue(snapshot *cache.Snapshot[T], touched map[api.Key]struct{}) {
	now := time.Now()
	g := &group[T]{replay: snapshot, resync: true, skip: touched, at: now}
	for _, l := range i.listeners {
		if l.resync.due(now) {
			l.resync.advance(now)
			l.push(g)
		}
	}
}
