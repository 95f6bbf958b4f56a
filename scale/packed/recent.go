package packed

import (
	"sync"

	"github.com/leatproject/leat/codec"
)

// generationLen is the number of decoded objects in a generation of recent. Two generations of pods take about a
// megabyte.
const generationLen = 64

// recent has the objects that were decoded last for handlers and index functions, which share them. So the handlers of
// one change decode it once, and so does the next change of the same object, which needs it as the old state. An object
// stays for at least one generation after its last use.
type recent[T any] struct {
	unpack func(*codec.Packed) T

	mu           sync.Mutex // guards the fields below
	newer, older map[*codec.Packed]*shared[T]
}

// shared is one object. It is decoded outside of the lock, by one goroutine.
type shared[T any] struct {
	once   sync.Once
	object T
}

func (r *recent[T]) get(p *codec.Packed) T {
	s := r.entry(p)
	s.once.Do(func() { s.object = r.unpack(p) })
	return s.object
}

func (r *recent[T]) entry(p *codec.Packed) *shared[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.newer[p]; s != nil {
		return s
	}
	s := r.older[p]
	if s == nil {
		s = &shared[T]{}
	}
	if r.newer == nil || len(r.newer) >= generationLen {
		r.newer, r.older = make(map[*codec.Packed]*shared[T], generationLen), r.newer
	}
	r.newer[p] = s
	return s
}
