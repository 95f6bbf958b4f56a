package deltafifo

import (
	"math"

	"github.com/leatproject/leat/api"
)

// changeBuffer has the changes of one batch: those since the last Pop, or those that the consumer processes.
//
// It has no index. The position of a known object's changes is in knownObject, where it costs no memory and no look-up.
// Only the positions of deleted objects are here.
type changeBuffer[T any] struct {
	objects   []ObjectChanges[T]
	deleted   map[api.Key]uint32         // positions of the changes of deleted objects
	forgotten map[api.Key]knownObject[T] // see Txn.Forget; usually nil
	// singles has the only change of most objects, so that they need no slice of their own.
	singles []api.Change[T]
}

// maxKept is the largest number of objects in a buffer that is used again. Clearing a map costs as much as its
// capacity. Without this bound, every small batch after a large list would pay for the large one.
const maxKept = 1024

// noPosition is the position of an object without changes in the buffer.
const noPosition = math.MaxUint32

func newChangeBuffer[T any]() *changeBuffer[T] {
	return &changeBuffer[T]{deleted: map[api.Key]uint32{}}
}

// grow allocates room for n objects in an empty buffer, instead of many steps of growth.
func (b *changeBuffer[T]) grow(n int) {
	if len(b.objects) == 0 {
		b.objects, b.singles = make([]ObjectChanges[T], 0, n), make([]api.Change[T], 0, n)
	}
}

// positionOfDeleted returns the position of the changes of an object that is not known, but may have been deleted.
func (b *changeBuffer[T]) positionOfDeleted(key api.Key) uint32 {
	if len(b.deleted) > 0 {
		if at, ok := b.deleted[key]; ok {
			return at
		}
	}
	return noPosition
}

// forget notes that an object leaves without a change.
func (b *changeBuffer[T]) forget(key api.Key, known knownObject[T]) {
	if b.forgotten == nil {
		b.forgotten = map[api.Key]knownObject[T]{}
	}
	b.forgotten[key] = known
}

// recall returns an object that forget was called for, which then does not leave.
func (b *changeBuffer[T]) recall(key api.Key) (known knownObject[T], ok bool) {
	if len(b.forgotten) > 0 {
		known, ok = b.forgotten[key]
		delete(b.forgotten, key)
	}
	return known, ok
}

// append adds a change to those of its object and returns their position. at is the position of the object's last
// changes. If a Pop has taken them, the buffer has another key at that position, or none.
func (b *changeBuffer[T]) append(at uint32, key api.Key, c api.Change[T]) uint32 {
	if int64(at) < int64(len(b.objects)) && b.objects[at].Key == key {
		b.objects[at].Changes = append(b.objects[at].Changes, c)
		return at
	}
	n := len(b.singles)
	b.singles = append(b.singles, c)
	b.objects = append(b.objects, ObjectChanges[T]{Key: key, Changes: b.singles[n : n+1 : n+1]})
	return uint32(n)
}

// reset empties the buffer, so that it holds no object. It reports whether the buffer should be used again.
func (b *changeBuffer[T]) reset() bool {
	if len(b.objects) > maxKept {
		return false
	}
	clear(b.objects)
	clear(b.singles)
	clear(b.deleted)
	b.forgotten = nil
	b.objects, b.singles = b.objects[:0], b.singles[:0]
	return true
}
