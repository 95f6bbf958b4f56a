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

// interner lets the objects that a codec decodes share the strings that repeat: namespaces, names of labels, of nodes
// and of images, constants of an enumeration. A string is kept when it is seen for the second time, so that names and
// UIDs of objects, which are seen once, displace nothing; one that is kept makes room for another that repeats and falls
// to the same places. It never holds more than internSlots strings, and none that aliases an answer.
//
// All answers of a codec share one, whatever goroutine reads them: a look-up is a hash and an atomic load or two.
type interner struct {
	seed maphash.Seed
	kept [internSlots]atomic.Pointer[interned] // a string has two places, side by side
	seen [seenSlots]atomic.Uint32              // what was seen once: a part of its hash, at a place that the rest gives
}

// interned is a string, and the same in an interface, where it would be allocated once more.
type interned struct {
	text  string
	boxed any
}

func newInterner() *interner { return &interner{seed: maphash.MakeSeed()} }

// intern returns b as a string. A nil interner keeps nothing.
func (n *interner) intern(b []byte) string {
	if n == nil || len(b) <= 1 || len(b) > maxInterned {
		return string(b) // of one byte the runtime has them all
	}
	if kept := n.find(b); kept != nil {
		return kept.text
	}
	return string(b)
}

// box returns b as a string in an interface.
func (n *interner) box(b []byte) any {
	if n == nil || len(b) > maxInterned {
		return string(b)
	}
	if kept := n.find(b); kept != nil {
		return kept.boxed
	}
	return string(b)
}

// find returns what is kept of b, and nil the first time.
func (n *interner) find(b []byte) *interned {
	h := maphash.Bytes(n.seed, b)
	first := &n.kept[h%internSlots]
	if kept := first.Load(); kept != nil && kept.text == string(b) {
		return kept
	}
	second := &n.kept[h%internSlots^1]
	if kept := second.Load(); kept != nil && kept.text == string(b) {
		return kept
	}
	before, mark := &n.seen[h>>16%seenSlots], uint32(h>>32)
	if before.Load() != mark {
		before.Store(mark)
		return nil
	}
	if first.Load() != nil && second.Load() == nil {
		first = second
	}
	text := string(b)
	kept := &interned{text: text, boxed: text}
	first.Store(kept)
	return kept
}
