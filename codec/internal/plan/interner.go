package plan

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// internSlots is the largest number of strings that are kept, and maxInterned the largest length of each, in bytes.
	internSlots = 4096
	maxInterned = 256
	// seenSlots is the number of strings that the interner remembers as seen once.
	seenSlots = 8192
)

// used is a bit of a mark. It is set if the string was looked up since another string last tried to take its place.
const used = 1

// Interner shares repeated strings between the objects that a codec decodes: namespaces, names of labels, nodes and
// images, and constants. It keeps a string when it sees it for the second time. So names and UIDs of objects, which
// come once, replace nothing. A kept string is replaced by another repeated string with the same places, unless it was
// looked up in the meantime. So if there are more repeated strings than places, the most frequent ones stay. The
// interner never holds more than internSlots strings, and none of them aliases an answer.
//
// All answers of a codec share one interner, on any goroutine. A look-up costs a hash and one or two atomic loads.
type Interner struct {
	seed maphash.Seed
	// Each string has two possible places, side by side. The marks are stored apart from the strings, so that a look-up
	// of a missing string reads only a mark. A mark contains a part of the hash, and used.
	marks [internSlots]atomic.Uint32
	kept  [internSlots]atomic.Value // a string, in the interface that Box returns
	seen  [seenSlots]atomic.Uint32  // strings that were seen once: a part of the hash, at a place that the rest of the hash gives
}

// NewInterner returns an empty Interner.
func NewInterner() *Interner { return &Interner{seed: maphash.MakeSeed()} }

// Intern returns b as a string. A nil interner keeps nothing.
func (n *Interner) Intern(b []byte) string {
	text, _ := n.Text(b)
	return text
}

// Text returns b as a string, and reports whether the interner keeps it.
func (n *Interner) Text(b []byte) (text string, kept bool) {
	if n == nil || len(b) <= 1 || len(b) > maxInterned {
		return string(b), false // the runtime has all strings of one byte
	}
	if text, kept = n.find(b).(string); kept {
		return text, true
	}
	return string(b), false
}

// Box returns b as a string in an interface.
func (n *Interner) Box(b []byte) any {
	if n == nil || len(b) > maxInterned {
		return string(b)
	}
	if kept := n.find(b); kept != nil {
		return kept
	}
	return string(b)
}

// find returns the kept string that is equal to b, or nil.
func (n *Interner) find(b []byte) any {
	h := maphash.Bytes(n.seed, b)
	at, mark := h%internSlots, uint32(h>>32)|used
	if kept := n.at(at, mark, b); kept != nil {
		return kept
	}
	if kept := n.at(at^1, mark, b); kept != nil {
		return kept
	}
	before := &n.seen[h>>16%seenSlots]
	if before.Load() != mark {
		before.Store(mark)
		return nil
	}
	return n.keep(at, mark, b)
}

// at returns the string at a place if it is equal to b.
func (n *Interner) at(place uint64, mark uint32, b []byte) any {
	is := n.marks[place].Load()
	if is|used != mark {
		return nil
	}
	kept := n.kept[place].Load()
	if text, ok := kept.(string); !ok || text != string(b) {
		return nil // another string with the same mark, or one that is being stored right now
	}
	if is != mark {
		n.marks[place].Store(mark)
	}
	return kept
}

// keep stores b in one of its places, if possible in a free one. It returns nil if both places are in use. If another
// goroutine overwrites the mark at the same time, a later look-up finds nothing; that is the only price.
func (n *Interner) keep(at uint64, mark uint32, b []byte) any {
	if n.marks[at].Load() != 0 && n.marks[at^1].Load() == 0 {
		at ^= 1
	}
	for _, place := range [...]uint64{at, at ^ 1} {
		is := n.marks[place].Load()
		if is&used == 0 {
			var kept any = string(b)
			n.kept[place].Store(kept)
			n.marks[place].Store(mark &^ used)
			return kept
		}
		n.marks[place].Store(is &^ used)
	}
	return nil
}
