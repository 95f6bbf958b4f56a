package deltafifo

import (
	"context"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
)

// DeltaFIFO collects the changes of objects, from one producer for one consumer, and decides what each change is. It
// corresponds to cache.DeltaFIFO of client-go. It keeps the state that it compares lists with, so it does not need the
// consumer's cache, and a Pop takes all changes.
type DeltaFIFO[T api.Object] struct {
	// known has every object as it will be after the next Pop. Only the producer uses it; several producers hold mu.
	known      map[api.Key]knownObject[T]
	generation uint32    // of the last Replace
	listed     bool      // Replace was called
	flushes    bool      // the producer calls Flush, so that Put need not wake the consumer
	flushed    time.Time // when the last Flush of a change ended

	changed    chan struct{} // has one element when there may be something to pop
	processing sync.Mutex    // held while a batch is processed, and after Close

	mu      sync.Mutex // guards the fields below
	buffer  *changeBuffer[T]
	spare   *changeBuffer[T] // an empty buffer for the next Pop, or nil
	version string
	dirty   bool // there is something to pop, at least a new version
	resync  bool
	since   time.Time
	initial bool                              // the first Replace is in buffer
	note    func() (version string, note any) // nil unless Annotate was called
}

type knownObject[T any] struct {
	object     T
	generation uint32 // of the last Replace with this object
	position   uint32 // of its changes in the buffer; see changeBuffer.append
}

// New returns an empty queue.
func New[T api.Object]() *DeltaFIFO[T] {
	return &DeltaFIFO[T]{
		known:   map[api.Key]knownObject[T]{},
		changed: make(chan struct{}, 1),
		buffer:  newChangeBuffer[T](),
	}
}

// Annotate lets a producer of transactions describe each batch: note returns the version of the state after the batch,
// and Batch.Note. It is called when the batch is taken, with the mutex of the queue held, so it must return at once and
// must not use the queue. Annotate must be called before the first change.
func (q *DeltaFIFO[T]) Annotate(note func() (version string, note any)) { q.note = note }

// Get returns the object as it will be after the next Pop. Only the producer may call it.
func (q *DeltaFIFO[T]) Get(key api.Key) (T, bool) {
	k, ok := q.known[key]
	return k.object, ok
}

// Lookup is Get for a key that is still in a decoder's buffer. It does not allocate.
func (q *DeltaFIFO[T]) Lookup(namespace, name []byte) (T, bool) {
	k, ok := q.known[api.Key{Namespace: string(namespace), Name: string(name)}]
	return k.object, ok
}

// KnownLen returns the number of objects after the next Pop. Only the producer may call it.
func (q *DeltaFIFO[T]) KnownLen() int { return len(q.known) }

// Len returns the number of objects whose changes the next Pop takes. It may be called on any goroutine.
func (q *DeltaFIFO[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.buffer.objects)
}

// Put records a new state of an object and the version of the collection with it. An object whose UID differs from the
// known one is recorded as a deletion of the known object, with an unknown final state, and an addition. Only the
// producer may call it.
func (q *DeltaFIFO[T]) Put(object T, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put(object, false)
	q.advance(version)
	q.added()
}

// Delete records the deletion of an object, with its last state. If the object is not known, only the version
// advances. If the known object has another UID, the known object is deleted, with an unknown final state. Only the
// producer may call it.
func (q *DeltaFIFO[T]) Delete(object T, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(api.KeyOf(object), object, false)
	q.advance(version)
	q.added()
}

// DeleteKey records the deletion of an object whose last state the producer has not received. The change has the known
// state, and its final state is unknown. Only the producer may call it.
func (q *DeltaFIFO[T]) DeleteKey(key api.Key, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if known, ok := q.known[key]; ok {
		q.recordDeletion(key, known, known.object, true)
	}
	q.advance(version)
	q.added()
}

// Bookmark records a version of the collection without a change. Only the producer may call it.
func (q *DeltaFIFO[T]) Bookmark(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance(version)
	q.added()
}

// Resync makes handlers get every object again. Several calls before a Pop have the effect of one. It may be called on
// any goroutine.
func (q *DeltaFIFO[T]) Resync() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resync = true
	q.markDirty()
	q.signal()
}

// Pop waits for a change, takes all changes, and calls process with them. The producer need not wait for process. It
// returns nil after that, or the error of ctx. Only one goroutine may call it.
func (q *DeltaFIFO[T]) Pop(ctx context.Context, process func(Batch[T])) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		q.processing.Lock()
		if q.pop(process) {
			return nil
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
		}
	}
}

// pop calls process with all changes, if there are any. It releases the processing lock, which the caller has taken,
// even if process ends the goroutine.
func (q *DeltaFIFO[T]) pop(process func(Batch[T])) bool {
	defer q.processing.Unlock()
	batch, taken := q.take()
	if taken == nil {
		return false
	}
	process(batch)
	if !batch.InitialList { // later batches are smaller, and an idle queue would keep the room of its first list
		q.recycle(taken)
	}
	return true
}

// take replaces the buffer and returns the old one, or nil if there is nothing to pop.
func (q *DeltaFIFO[T]) take() (batch Batch[T], taken *changeBuffer[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dirty {
		return batch, nil
	}
	taken = q.buffer
	batch = Batch[T]{
		Objects: taken.objects, ResourceVersion: q.version, InitialList: q.initial, Resync: q.resync, Since: q.since,
	}
	q.buffer, q.spare = q.spare, nil
	if q.buffer == nil {
		q.buffer = newChangeBuffer[T]()
	}
	for key := range taken.forgotten {
		batch.Forgotten = append(batch.Forgotten, key)
	}
	q.dirty, q.resync, q.initial = false, false, false
	if q.note != nil {
		batch.ResourceVersion, batch.Note = q.note()
	}
	return batch, taken
}

func (q *DeltaFIFO[T]) recycle(p *changeBuffer[T]) {
	if !p.reset() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = p
}

// put records object as the newest state of its key, and decides what kind of change that is. initial reports that the
// state belongs to the first list.
func (q *DeltaFIFO[T]) put(object T, initial bool) {
	key := api.KeyOf(object)
	old, exists := q.known[key]
	if !exists {
		old, exists = q.buffer.recall(key)
	}
	if exists && differentUIDs(old.object, object) {
		q.recordDeletion(key, old, old.object, true)
		exists = false
	}
	change := api.Change[T]{Type: api.Added, Object: object, InitialList: initial}
	at := old.position
	if exists {
		change = api.Change[T]{Type: api.Updated, Object: object, Old: old.object}
	} else {
		at = q.buffer.positionOfDeleted(key)
	}
	q.known[key] = knownObject[T]{object: object, generation: q.generation, position: q.record(at, key, change)}
}

// remove records the deletion of an object, with its last state, if the object is known.
func (q *DeltaFIFO[T]) remove(key api.Key, last T, finalStateUnknown bool) {
	known, ok := q.known[key]
	if !ok {
		return
	}
	if differentUIDs(known.object, last) {
		last, finalStateUnknown = known.object, true
	}
	q.recordDeletion(key, known, last, finalStateUnknown)
}

// recordDeletion records the deletion of a known object. last is its last state.
func (q *DeltaFIFO[T]) recordDeletion(key api.Key, known knownObject[T], last T, finalStateUnknown bool) {
	delete(q.known, key)
	change := api.Change[T]{Type: api.Deleted, Object: last, FinalStateUnknown: finalStateUnknown}
	q.buffer.deleted[key] = q.record(known.position, key, change)
}

// record appends a change to the buffer and returns its position there. at is the position of the object's last
// changes.
func (q *DeltaFIFO[T]) record(at uint32, key api.Key, change api.Change[T]) uint32 {
	q.markDirty()
	change.At = q.since
	return q.buffer.append(at, key, change)
}

func (q *DeltaFIFO[T]) advance(version string) {
	if version != "" && version != q.version {
		q.version = version
		q.markDirty()
	}
}

// markDirty records that there is something to pop.
func (q *DeltaFIFO[T]) markDirty() {
	if !q.dirty {
		q.dirty, q.since = true, time.Now()
	}
}

// added wakes the consumer, unless a Flush will follow.
func (q *DeltaFIFO[T]) added() {
	if !q.flushes {
		q.signal()
	}
}

func (q *DeltaFIFO[T]) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// differentUIDs reports whether two objects with one key have different UIDs. An object without a UID is equal to any.
func differentUIDs(a, b api.Object) bool {
	return a.GetUID() != "" && b.GetUID() != "" && a.GetUID() != b.GetUID()
}
