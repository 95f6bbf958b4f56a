package wireplan

import (
	"encoding/binary"
	"math/bits"
)

// recentBits is the number of bits that select the place of a string: 512 places of 16 bytes each, per answer.
const recentBits = 9

// recent holds strings that were in the answer lately, each at a place that a few of its bytes select. Most strings of
// an object are constants and were also in the previous object. Unlike the interner, it belongs to one goroutine. So a
// look-up is one multiplication and one comparison, with bytes in the processor's cache. A nil recent remembers
// nothing.
type recent [1 << recentBits]string

// slot returns the place of b, or nil if b cannot be stored.
func (t *recent) slot(b []byte) *string {
	n := len(b)
	if t == nil || n <= 1 {
		return nil
	}
	var x uint64
	if n >= 8 {
		x = binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 29)
	} else {
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	const odd = 0x9e3779b97f4a7c15
	return &t[(x^uint64(n)<<32)*odd>>(64-recentBits)]
}
