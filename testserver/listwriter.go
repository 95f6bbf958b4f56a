package testserver

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// The sizes in bytes of encoded items. A list is written in chunks. Only lists with sizes between least and most are
// kept: the server encodes smaller ones quickly, and larger ones would need too much memory.
const (
	chunkSize = 256 << 10
	leastKept = 128 << 10
	mostKept  = 32 << 20
)

// keptList are the encoded items of a list without selectors. They stay right as long as the collection has the same
// root: writes to other collections change the version of the list, which is not part of it.
type keptList struct {
	view      store.View
	namespace string
	shape     wire.Shape
	size      int // of the items, as sizeOf returns it
	encoded   int // bytes in chunks
	chunks    [][]byte
}

// keptLists has the lists that were encoded last, because many clients send the same list when they start, and encoding
// costs several times more than writing. The next garbage collection frees those that are not being written.
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

// add keeps a complete list.
func (k *keptLists) add(l *keptList) {
	if l.encoded < leastKept || l.encoded > mostKept {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent[k.next] = weak.Make(l)
	k.next = (k.next + 1) % len(k.recent)
}

// append adds a chunk, which the list owns from now on.
func (l *keptList) append(chunk []byte) {
	if l.encoded += len(chunk); l.encoded > mostKept {
		l.chunks = nil
		return
	}
	l.chunks = append(l.chunks, chunk)
}

// listWriter writes the items of a list in JSON.
type listWriter struct {
	w     io.Writer
	keep  *keptList // nil if the list is not kept
	chunk []byte
	items int
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
	_, err := l.w.Write(l.chunk)
	if l.keep == nil {
		l.chunk = l.chunk[:0]
		return err == nil
	}
	l.keep.append(l.chunk)
	l.chunk = make([]byte, 0, chunkSize)
	return err == nil
}

// beginList writes a list in JSON up to its items. end writes the rest.
func (x *call) beginList(sh wire.Shape, meta metav1.ListMeta, size func() int) (w io.Writer, end func(), err error) {
	head, tail, err := sh.ListParts(meta)
	if err != nil {
		return nil, nil, fmt.Errorf("testserver: encode list metadata: %w", err)
	}
	w, finish := io.Writer(x.w), func() {}
	if x.options.Compress && size() > wire.CompressFrom {
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

// writeKept answers with a list that was encoded before.
func (x *call) writeKept(meta metav1.ListMeta, l *keptList) error {
	w, end, err := x.beginList(l.shape, meta, func() int { return l.size })
	if err != nil {
		return err
	}
	defer end()
	for _, chunk := range l.chunks {
		if _, err := w.Write(chunk); err != nil {
			return nil // the client has gone
		}
	}
	return nil
}
