package codec

import (
	"encoding/binary"
	"math/bits"
)

// recentBits is how many bits of a sum say where a string stands: 512 places, of 16 bytes each, for an answer.
const recentBits = 9

// recent are strings that stood in the answer lately, each at a place that a few of its bytes give: most strings of an
// object are constants, and stand in the one before it as well. Unlike the interner it belongs to one goroutine, so that
// a look-up is a multiplication and a comparison with bytes that are in the cache of the processor. A nil one remembers
// nothing.
type recent [1 << recentBits]string

// slot returns where b would stand, if it may stand anywhere.
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
