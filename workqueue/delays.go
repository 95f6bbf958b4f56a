package workqueue

import "slices"

// arity is the number of children of a node of the heap. Four slots are one cache line, and a heap of four is half as
// deep as one of two.
const arity = 4

// dueSlot is an entry in the heap, with its time beside it so that a comparison need not visit the entry.
type dueSlot struct {
	at    stamp
	entry id
}

// delayHeap orders the delayed entries by when they are due, and those that are due at once by when they were added.
// Entries know their index, so that one can be advanced or removed.
type delayHeap[K comparable] struct {
	slab  *slab[K]
	slots []dueSlot
	adds  uint64
}

func (h *delayHeap[K]) push(e *entry[K], at stamp) {
	h.adds++
	e.order = h.adds
	h.slots = append(h.slots, dueSlot{})
	h.up(len(h.slots)-1, dueSlot{at, e.id})
}

func (h *delayHeap[K]) empty() bool { return len(h.slots) == 0 }

// first returns when the first entry is due. There must be one.
func (h *delayHeap[K]) first() stamp { return h.slots[0].at }

// pop takes the first entry out.
func (h *delayHeap[K]) pop() *entry[K] {
	e := h.slab.at(h.slots[0].entry)
	h.remove(e)
	return e
}

// advance makes an entry due earlier than it was.
func (h *delayHeap[K]) advance(e *entry[K], at stamp) {
	h.up(int(e.heapIndex), dueSlot{at, e.id})
}

func (h *delayHeap[K]) remove(e *entry[K]) {
	i, last := int(e.heapIndex), len(h.slots)-1
	moved := h.slots[last]
	h.slots = h.slots[:last]
	if i < last {
		if i > 0 && h.less(moved, h.slots[(i-1)/arity]) {
			h.up(i, moved)
		} else {
			h.down(i, moved)
		}
	}
}

// up puts s where i is, or nearer to the root.
func (h *delayHeap[K]) up(i int, s dueSlot) {
	for i > 0 {
		parent := (i - 1) / arity
		if !h.less(s, h.slots[parent]) {
			break
		}
		h.place(i, h.slots[parent])
		i = parent
	}
	h.place(i, s)
}

// down puts s where i is, or further from the root.
func (h *delayHeap[K]) down(i int, s dueSlot) {
	for {
		first := i*arity + 1
		if first >= len(h.slots) {
			break
		}
		least := first
		for child := first + 1; child < min(first+arity, len(h.slots)); child++ {
			if h.less(h.slots[child], h.slots[least]) {
				least = child
			}
		}
		if !h.less(h.slots[least], s) {
			break
		}
		h.place(i, h.slots[least])
		i = least
	}
	h.place(i, s)
}

func (h *delayHeap[K]) place(i int, s dueSlot) {
	h.slots[i] = s
	h.slab.at(s.entry).heapIndex = int32(i)
}

// trim gives most of the array back when most of it is empty.
func (h *delayHeap[K]) trim() {
	if cap(h.slots) > roomy && len(h.slots) < cap(h.slots)/4 {
		h.slots = slices.Clone(h.slots)
	}
}

func (h *delayHeap[K]) less(a, b dueSlot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return h.slab.at(a.entry).order < h.slab.at(b.entry).order
}
