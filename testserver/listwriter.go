package testserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// chunkSize is the size in bytes of the parts in which a list is written. A part stays in the processor's cache between
// encoding and writing.
const chunkSize = 128 << 10

// leastKept is the size of the smallest list that is kept, in items. Smaller ones are collected quickly.
const leastKept = 256

// keptList are the records of a list without selectors. They stay right as long as the collection has the same root:
// writes to other collections change the version of the list, which is not part of it.
type keptList struct {
	view      store.View
	namespace string
	shape     wire.Shape
	items     []*store.Record // can be encoded in the shape
}

// keptLists has the lists that were sent last, because many clients send the same list when they start. It does not
// have their text: the pages of new memory would cost more time than encoding from the records. The next garbage
// collection frees the lists that are not being written.
type keptLists struct {
	mu     sync.Mutex // guards the fields below
	recent [8]weak.Pointer[keptList]
	next   int // index of the one to replace next
}

// find returns the list with the same items in the same form, or nil.
func (k *keptLists) find(view store.View, namespace string, shape wire.Shape) *keptList {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.recent {
		l := p.Value()
		if l != nil && l.view.Same(view) && l.namespace == namespace && l.shape == shape {
			return l
		}
	}
	return nil
}

// add keeps a list.
func (k *keptLists) add(l *keptList) {
	if len(l.items) < leastKept {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent[k.next] = weak.Make(l)
	k.next = (k.next + 1) % len(k.recent)
}

// chunkBuffer has room for a chunk, and for what the last item has besides its record.
type chunkBuffer [chunkSize + 4<<10]byte

// chunkBuffers are those of large lists.
var chunkBuffers = sync.Pool{New: func() any { return new(chunkBuffer) }}

// listWriter writes the items of a list in JSON.
type listWriter struct {
	w      io.Writer
	joiner *pipe.Joiner
	chunk  []byte
	items  int
}

// useBuffer takes a buffer for the chunks. The caller calls done after the list is written, but not after an error:
// HTTP/2 may still read the buffer then.
func (l *listWriter) useBuffer() (done func()) {
	b := chunkBuffers.Get().(*chunkBuffer)
	l.chunk = b[:0]
	return func() { chunkBuffers.Put(b) }
}

// room begins an item with a number of bytes. It returns false if the client has gone.
func (l *listWriter) room(size int) bool {
	if len(l.chunk)+1+size > chunkSize && !l.flush() {
		return false
	}
	if l.items > 0 {
		l.chunk = append(l.chunk, ',')
	}
	l.items++
	return true
}

// put adds an encoded item. It returns false if the client has gone, or if a fault cut the answer.
func (l *listWriter) put(item []byte) bool {
	if !l.room(len(item)) {
		return false
	}
	l.chunk = append(l.chunk, item...)
	return true
}

// flush writes the chunk. It returns false as put does.
func (l *listWriter) flush() bool {
	l.joiner.Join()
	_, err := l.w.Write(l.chunk)
	l.chunk = l.chunk[:0]
	return errors.Join(err, l.joiner.Send()) == nil
}

// beginList writes a list in JSON up to its items. end writes the rest after them.
func (x *call) beginList(
	sh wire.Shape, meta metav1.ListMeta, items []*store.Record,
) (w io.Writer, end func(), err error) {
	head, tail, err := sh.ListParts(meta)
	if err != nil {
		return nil, nil, fmt.Errorf("testserver: encode list metadata: %w", err)
	}
	w, finish := io.Writer(x.w), func() {}
	if x.options.Compress && sizeOf(items) > wire.CompressFrom {
		if g, ok := wire.Compress(x.w, x.http); ok {
			w, finish = g, g.Finish
		}
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	_, _ = w.Write(head) // an error means that the client has gone, and the next write returns it too
	return w, func() {
		_, _ = w.Write(tail) // as above
		finish()
	}, nil
}

// sizeOf returns the number of bytes of items as they are stored.
func sizeOf(items []*store.Record) int {
	size := 0
	for _, r := range items {
		size += r.Size()
	}
	return size
}
