package plan

import (
	"encoding/binary"
	"math/bits"
)

// Texts looks for strings in an interner, for one goroutine. While few strings are found, it looks only for samples,
// because a look-up of a string that never comes again takes longer than its copy.
type Texts struct {
	*Interner         // nil keeps nothing
	recent    *recent // nil remembers nothing
	misses    int32   // see look
	skipped   uint64
}

// recentBits is the number of bits that select the place of a string: 512 places of 16 bytes each, per answer.
const recentBits = 9

// recent holds strings that were in the answer lately, each at a place that a few of its bytes select. Most strings of
// an object are constants and were also in the previous object. Unlike the interner, it belongs to one goroutine. So a
// look-up is one multiplication and one comparison, with bytes in the processor's cache.
type recent [1 << recentBits]string

// NewTexts returns a Texts of an interner, which may be nil.
func NewTexts(n *Interner) Texts { return Texts{Interner: n, misses: -credit} }

// Remember prepares t for many objects, whose strings repeat.
func (t *Texts) Remember() { t.recent = &recent{} }

// Text returns b as a string, which is shared with recent strings of the answer, or of any answer.
func (t *Texts) Text(b []byte) string {
	if len(b) <= 1 || len(b) > maxInterned {
		return string(b) // the runtime has all strings of one byte
	}
	few := fewBytes(b)
	var slot *string
	if t.recent != nil {
		if slot = &t.recent[few>>(64-recentBits)]; *slot == string(b) {
			return *slot
		}
	}
	text, kept := t.look(few, b).(string)
	if !kept {
		return string(b)
	}
	if slot != nil {
		*slot = text // a string that was seen once replaces nothing
	}
	return text
}

// Box returns b as a string in an interface.
func (t *Texts) Box(b []byte) any {
	if len(b) > 1 && len(b) <= maxInterned {
		if kept := t.look(fewBytes(b), b); kept != nil {
			return kept
		}
	}
	return string(b)
}

// look returns the kept string that is equal to b, or nil. It looks for all strings or for samples, as Hasher.Find does
// for parts.
func (t *Texts) look(few uint64, b []byte) any {
	if t.Interner == nil {
		return nil
	}
	if t.misses >= worthless && !isSample(few, t.skipped/epoch) {
		t.skipped++
		return nil
	}
	kept, found := t.find(b)
	t.misses = afterLook(t.misses, found)
	return kept
}

// fewBytes returns a hash of the length, the first and the last bytes of b, which has at least two. The upper bits are
// the better ones.
func fewBytes(b []byte) uint64 {
	n := len(b)
	var x uint64
	if n >= 8 {
		x = binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 29)
	} else {
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return (x ^ uint64(n)<<32) * odd
}
