package deltafifo

import (
	"context"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
)

// Options of a DeltaFIFO. The zero value is what most want.
type Options struct {
	// NoReuse makes Replace pass on every object, also one whose UID and version are what they were: for servers whose
	// answers change without a version.
	NoReuse bool
}

// DeltaFIFO accumulates the changes of objects, from one producer to one consumer.
// It corresponds to cache.DeltaFIFO of client-go. It differs in that it owns the state it compares with, so that it
// needs no view of the consumer's cache, and in that a Pop takes everything there is.
type DeltaFIFO[T api.Object] struct {
	reuse bool

	// known is the state of every object as it will be once the queue is drained. Only the producer touches it.
	known      map[api.Key]knownObject[T]
	generation uint32 // of the last Replace
	listed     bool   // there has been a Replace

	changed chan struct{} // holds a token whenever there may be something to pop
	synced  chan struct{} // closed once the first Replace has been processed

	mu      sync.Mutex // guards the fields below
	pending *pending[T]
	spare   *pending[T] // the emptied other half of the double buffer
	version string
	dirty   bool // there is something to pop, be it only a new version
	resync  bool
	since   time.Time
	first   bool // the first Replace is among what is pending
}

type knownObject[T any] struct {
	object     T
	generation uint32 // of the last Replace that had it
	position   uint32 // where its changes were put last, if they are still pending: see pending.append
}

// New returns an empty queue.
func New[T api.Object](o Options) *DeltaFIFO[T] {
	return &DeltaFIFO[T]{
		reuse:   !o.NoReuse,
		known:   map[api.Key]knownObject[T]{},
		changed: make(chan struct{}, 1),
		synced:  make(chan struct{}),
		pending: newPending[T](),
	}
}

// Get returns the object as it will be once the queue is drained. Only the producer may call it.
func (q *DeltaFIFO[T]) Get(key api.Key) (T, bool) {
	k, ok := q.known[key]
	return k.object, ok
}

// Lookup is Get for a key that is still in a decoder's buffer: it does not allocate.
func (q *DeltaFIFO[T]) Lookup(namespace, name []byte) (T, bool) {
	k, ok := q.known[api.Key{Namespace: string(namespace), Name: string(name)}]
	return k.object, ok
}

// KnownLen is the number of objects that there will be once the queue is drained. Only the producer may call it.
func (q *DeltaFIFO[T]) KnownLen() int { return len(q.known) }

// Put records a new state of an object, and the version that the collection has with it. An object of another UID than
// the known one is recorded as what it is: the old one's deletion, of which the final state is unknown, and an
// addition. Only the producer may call it.
func (q *DeltaFIFO[T]) Put(object T, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put(object, 0)
	q.advance(version)
}

// Delete records that an object is gone, with its last state. What is not known cannot go: only the version advances
// then. When the known object has another UID, it is that one which is gone, its final state unknown.
// Only the producer may call it.
func (q *DeltaFIFO[T]) Delete(object T, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := api.KeyOf(object)
	if old, ok := q.known[key]; ok {
		unknown := otherIncarnation(old.object, object)
		if unknown {
			object = old.object
		}
		q.drop(key, old.position, object, unknown)
	}
	q.advance(version)
}

// DeleteKey records that an object is gone whose last state the producer has not seen: the known one stands in for it,
// marked as such. Only the producer may call it.
func (q *DeltaFIFO[T]) DeleteKey(key api.Key, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old, ok := q.known[key]; ok {
		q.drop(key, old.position, old.object, true)
	}
	q.advance(version)
}

// Bookmark records that the collection has reached a version without a change. Only the producer may call it.
func (q *DeltaFIFO[T]) Bookmark(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(version)
}

// Resync asks for one more announcement of every object. It may be called from anywhere, and queues one marker however
// often it is called.
func (q *DeltaFIFO[T]) Resync() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resync = true
	q.touch()
}

// Synced is closed when the first Replace has been processed.
func (q *DeltaFIFO[T]) Synced() <-chan struct{} { return q.synced }

// Pop waits until there is something, takes all of it, and calls process with it, without a lock. It returns the
// error of ctx if that ends first. There may be only one consumer.
func (q *DeltaFIFO[T]) Pop(ctx context.Context, process func(Batch[T])) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, taken := q.take()
		if taken != nil {
			process(batch)
			q.giveBack(taken)
			if batch.InitialList {
				close(q.synced)
			}
			return nil
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
		}
	}
}

// take swaps the halves of the double buffer. It returns nil if there is nothing to take.
func (q *DeltaFIFO[T]) take() (batch Batch[T], taken *pending[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dirty {
		return batch, nil
	}
	taken = q.pending
	batch = Batch[T]{
		Objects: taken.objects, ResourceVersion: q.version, InitialList: q.first, Resync: q.resync, Since: q.since,
	}
	q.pending, q.spare = q.spare, nil
	if q.pending == nil {
		q.pending = newPending[T]()
	}
	q.dirty, q.resync, q.first = false, false, false
	return batch, taken
}

func (q *DeltaFIFO[T]) giveBack(p *pending[T]) {
	if !p.reset() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = p
}

// put records object as the newest state of its key. kind is Listed when it came with a list, and otherwise zero:
// Added or Updated is then told from what is known.
func (q *DeltaFIFO[T]) put(object T, kind DeltaType) {
	key := api.KeyOf(object)
	old, exists := q.known[key]
	if exists && otherIncarnation(old.object, object) {
		q.drop(key, old.position, old.object, true)
		exists = false
	}
	if kind == 0 {
		kind = Added
		if exists {
			kind = Updated
		}
	}
	at := old.position
	if !exists {
		at = q.pending.positionOfGone(key)
	}
	at = q.pending.append(at, key, Delta[T]{Type: kind, Object: object, InitialList: q.first && kind == Listed})
	q.known[key] = knownObject[T]{object: object, generation: q.generation, position: at}
	q.touch()
}

// drop records the end of a known object, whose changes were put at a position last.
func (q *DeltaFIFO[T]) drop(key api.Key, position uint32, last T, finalStateUnknown bool) {
	delete(q.known, key)
	q.pending.gone[key] = q.pending.append(position, key, Delta[T]{Type: Deleted, Object: last, FinalStateUnknown: finalStateUnknown})
	q.touch()
}

func (q *DeltaFIFO[T]) advance(version string) {
	if version != "" && version != q.version {
		q.version = version
		q.touch()
	}
}

// touch notes that there is something to pop.
func (q *DeltaFIFO[T]) touch() {
	if !q.dirty {
		q.dirty, q.since = true, time.Now()
	}
	q.signal()
}

func (q *DeltaFIFO[T]) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// otherIncarnation tells whether two objects of one key were never the same object.
func otherIncarnation(a, b api.Object) bool {
	return a.GetUID() != "" && b.GetUID() != "" && a.GetUID() != b.GetUID()
}
