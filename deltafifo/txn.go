package deltafifo

import "github.com/leatproject/leat/api"

// Txn is a group of changes that the consumer gets in one batch. It is for a producer that merges several streams and
// decides itself which objects a list lacks, such as package scopes. The mutex of the queue is held until Commit, so a
// Txn belongs to one goroutine, and readers and the consumer wait for it.
type Txn[T api.Object] struct{ q *DeltaFIFO[T] }

// Begin starts a transaction. It blocks while another one is open. If several goroutines produce, each of their calls
// must be in a transaction.
func (q *DeltaFIFO[T]) Begin() Txn[T] {
	q.mu.Lock()
	return Txn[T]{q}
}

// Commit ends the transaction and wakes the consumer.
func (t Txn[T]) Commit() {
	if t.q.dirty {
		t.q.signal()
	}
	t.q.mu.Unlock()
}

// Get returns the object as it will be after the next Pop.
func (t Txn[T]) Get(key api.Key) (T, bool) { return t.q.Get(key) }

// Put records a new state of an object. initial reports that the state belongs to the first list of its stream.
func (t Txn[T]) Put(object T, initial bool) { t.q.put(object, initial) }

// Delete records the deletion of an object, with its last state. If the known object has another UID, the known object
// is deleted, with an unknown final state. An unknown object makes no change.
func (t Txn[T]) Delete(key api.Key, last T, finalStateUnknown bool) {
	t.q.remove(key, last, finalStateUnknown)
}

// Forget removes an object without a change; see Batch.Forgotten. If a Put follows before the next Pop, the object is
// updated.
func (t Txn[T]) Forget(key api.Key) {
	if known, ok := t.q.known[key]; ok {
		delete(t.q.known, key)
		t.q.buffer.forget(key, known)
		t.q.markDirty()
	}
}

// Complete marks the next batch as the one that completes the first list. It may be called once.
func (t Txn[T]) Complete() {
	t.q.initial = true
	t.q.markDirty()
}

// Touch makes sure that there is a next batch, even without a change, because the note has changed.
func (t Txn[T]) Touch() { t.q.markDirty() }
