package workqueue

// arity is the number of children of a heap node. Four slots fill one cache line, and a heap with four children per
// node is half as deep as a binary one.
const arity = 4

// dueLength is the number of slots that are allocated together. One array for a million slots would have to be copied
// to grow.
const dueLength = 128

// dueSlot is an entry in the heap. It holds the due time too, so that a comparison need not read the entry.
type dueSlot struct {
	at    stamp
	entry id
}

// delayHeap orders the delayed entries by due time; entries with the same due time keep the order of their adds. An
// entry knows its index, so that it can be moved or removed.
type delayHeap[K comparable] struct {
	slab   *slab[K]
	pages  []*[dueLength]dueSlot
	length int
	adds   uint64
}

func (h *delayHeap[K]) push(e *entry[K], at stamp) {
	h.adds++
	e.order = h.adds
	if h.length == len(h.pages)*dueLength {
		h.pages = append(h.pages, new([dueLength]dueSlot))
	}
	h.length++
	h.up(h.length-1, dueSlot{at, e.id})
}

func (h *delayHeap[K]) slot(i int) *dueSlot { return &h.pages[uint(i)/dueLength][uint(i)%dueLength] }

func (h *delayHeap[K]) empty() bool { return h.length == 0 }

// first returns the due time of the first entry. The heap must not be empty.
func (h *delayHeap[K]) first() stamp { return h.slot(0).at }

// pop removes the first entry and returns it.
func (h *delayHeap[K]) pop() *entry[K] {
	e := h.slab.at(h.slot(0).entry)
	h.remove(e)
	return e
}

// advance makes an entry due earlier.
func (h *delayHeap[K]) advance(e *entry[K], at stamp) {
	h.up(int(e.heapIndex), dueSlot{at, e.id})
}

func (h *delayHeap[K]) remove(e *entry[K]) {
	i := int(e.heapIndex)
	h.length--
	if moved := *h.slot(h.length); h.less(moved, *h.slot(i)) {
		h.up(i, moved)
	} else {
		h.down(i, moved)
	}
}

// up stores s at index i, or closer to the root.
func (h *delayHeap[K]) up(i int, s dueSlot) {
	for i > 0 {
		parent := (i - 1) / arity
		above := *h.slot(parent)
		if !h.less(s, above) {
			break
		}
		h.place(i, above)
		i = parent
	}
	h.place(i, s)
}

// down stores s at index i, or farther from the root.
func (h *delayHeap[K]) down(i int, s dueSlot) {
	for {
		first := i*arity + 1
		if first >= h.length {
			break
		}
		least, below := first, *h.slot(first)
		for child := first + 1; child < min(first+arity, h.length); child++ {
			if c := *h.slot(child); h.less(c, below) {
				least, below = child, c
			}
		}
		if !h.less(below, s) {
			break
		}
		h.place(i, below)
		i = least
	}
	h.place(i, s)
}

func (h *delayHeap[K]) place(i int, s dueSlot) {
	*h.slot(i) = s
	h.slab.at(s.entry).heapIndex = int32(i)
}

// trim releases the pages that a heap of room entries does not need.
func (h *delayHeap[K]) trim(room int) {
	if needed := room/dueLength + 1; needed < len(h.pages) {
		h.pages = append(make([]*[dueLength]dueSlot, 0, needed), h.pages[:needed]...)
	}
}

// all yields the entries in no particular order.
func (h *delayHeap[K]) all(yield func(*entry[K]) bool) {
	for i := range h.length {
		if !yield(h.slab.at(h.slot(i).entry)) {
			return
		}
	}
}

// clear removes every entry and releases the memory.
func (h *delayHeap[K]) clear() { h.pages, h.length = nil, 0 }

func (h *delayHeap[K]) less(a, b dueSlot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return h.slab.at(a.entry).order < h.slab.at(b.entry).order
}
