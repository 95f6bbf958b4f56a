package recording

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// partSize is the size of the parts in which a frame is compared with a keyframe. A smaller size costs memory and
// time, and a larger one writes more bytes for each changed number.
const partSize = 128

// summer computes hashes of parts. Two different parts have the same hash with a chance of at most about 2^-56,
// whatever they are, because the key is random and never leaves the process. The method is NH of UMAC (RFC 4418) with
// words of 64 bits, except that the halves of the products are added without the carry between them. This takes less
// time and doubles the bound. The last word of the key, which is odd, folds both halves into 64 bits. A fold
// without a key would be cheaper, but then somebody can choose two parts that have the same hash with a chance of
// 2^-29.
type summer [partSize/8 + 1]uint64

func newSummer() *summer {
	var random [partSize + 8]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &summer{}
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(random[8*i:])
	}
	s[len(s)-1] |= 1
	return s
}

// sum returns the hash of a part.
func (s *summer) sum(p *[partSize]byte) uint64 {
	_, sum := s.equal(nil, p[:])
	return sum
}

// equal returns how many parts of b have the hashes in sums, in their order, and the hash of the part behind them. The
// hash is 0 if b has no whole part there. The words of a part are written out, because they take much of the time of
// the tap: a loop takes three times as long, and a call for each part a quarter more.
func (s *summer) equal(sums []uint64, b []byte) (n int, other uint64) {
	for ; len(b) >= partSize; b = b[partSize:] {
		p := (*[partSize]byte)(b)
		hi, lo := bits.Mul64(word(p, 0)+s[0], word(p, 1)+s[1])
		h, l := bits.Mul64(word(p, 2)+s[2], word(p, 3)+s[3])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 4)+s[4], word(p, 5)+s[5])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 6)+s[6], word(p, 7)+s[7])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 8)+s[8], word(p, 9)+s[9])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 10)+s[10], word(p, 11)+s[11])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 12)+s[12], word(p, 13)+s[13])
		hi, lo = hi+h, lo+l
		h, l = bits.Mul64(word(p, 14)+s[14], word(p, 15)+s[15])
		hi, lo = hi+h, lo+l
		sum := hi*s[16] + lo
		if n == len(sums) || sum != sums[n] {
			return n, sum
		}
		n++
	}
	return n, 0
}

func word(p *[partSize]byte, i int) uint64 { return binary.LittleEndian.Uint64(p[8*i : 8*i+8]) }
