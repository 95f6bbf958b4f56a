package codec

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// internSlots bounds how many strings are kept, and maxInterned how long each may be, in bytes.
	internSlots = 4096
	maxInterned = 256
	// seenSlots is of how many strings it is known that they were seen lately.
	seenSlots = 8192
)

// used is set in the mark of a place when its string was asked for since it last had to defend the place.
const used = 1

// interner lets the objects that a codec decodes share the strings that repeat: namespaces, names of labels, of nodes
// and of images, constants of an enumeration. A string is kept when it is seen for the second time, so that names and
// UIDs of objects, which are seen once, displace nothing; one that is kept makes room for another that repeats and falls
// to the same places, unless it was asked for in the meantime: where more strings repeat than there are places, those
// that repeat most stay. It never holds more than internSlots strings, and none that aliases an answer.
//
// All answers of a codec share one, whatever goroutine reads them: a look-up is a hash and an atomic load or two.
type interner struct {
	seed maphash.Seed
	// A string has two places, side by side. The marks stand apart from the strings, so that looking for what is not
	// there touches nothing else; a part of the hash, and used.
	marks [internSlots]atomic.Uint32
	kept  [internSlots]atomic.Value // string, in the interface that box returns
	seen  [seenSlots]atomic.Uint32  // what was seen once: a part of its hash, at a place that the rest gives
}

func newInterner() *interner { return &interner{seed: maphash.MakeSeed()} }

// intern returns b as a string. A nil interner keeps nothing.
func (n *interner) intern(b []byte) string {
	text, _ := n.text(b)
	return text
}

// text returns b as a string, and whether that is one that is kept.
func (n *interner) text(b []byte) (text string, kept bool) {
	if n == nil || len(b) <= 1 || len(b) > maxInterned {
		return string(b), false // of one byte the runtime has them all
	}
	if text, kept = n.find(b).(string); kept {
		return text, true
	}
	return string(b), false
}

// box returns b as a string in an interface.
func (n *interner) box(b []byte) any {
	if n == nil || len(b) > maxInterned {
		return string(b)
	}
	if kept := n.find(b); kept != nil {
		return kept
	}
	return string(b)
}

// find returns what is kept of b, a string, and nil where nothing is.
func (n *interner) find(b []byte) any {
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

// at returns what is kept at a place if that is b.
func (n *interner) at(place uint64, mark uint32, b []byte) any {
	is := n.marks[place].Load()
	if is|used != mark {
		return nil
	}
	kept := n.kept[place].Load()
	if text, ok := kept.(string); !ok || text != string(b) {
		return nil // another of the same mark, or one that is just being put there
	}
	if is != mark {
		n.marks[place].Store(mark)
	}
	return kept
}

// keep puts b into one of its places, a free one if there is, and returns nil if both are defended. A mark that another
// goroutine overwrites at the same time costs a look-up that finds nothing.
func (n *interner) keep(at uint64, mark uint32, b []byte) any {
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
