package cache

import (
	"cmp"
	"encoding/binary"
	"math/bits"

	"github.com/leatproject/leat/api"
)

// Two odd numbers without any pattern: the seed and the multiplier.
const (
	hashA = 0xa0b4_d1e6_93c7_f58b
	hashB = 0xe7c5_8fa9_d2b3_96f1
)

// hashKey is the same in every process, unlike that of a Go map: iteration follows it, and a simulation that is replayed
// from its seed has to see the same order again. The price is that somebody who may create objects under names of their
// choosing can make them collide. That is borne: among n keys that collide one is found in O(log n) and changed by
// copying n entries, and nobody else's objects get slower.
func hashKey(key api.Key) uint64 {
	h := hashString(hashA, key.Namespace)
	return hashString(h, key.Name)
}

// hashString folds a string into a hash, eight bytes at a time, by the upper and lower half of a product.
func hashString(h uint64, s string) uint64 {
	length := uint64(len(s))
	for len(s) >= 8 {
		h = fold(h^word(s), hashB)
		s = s[8:]
	}
	var tail [8]byte
	copy(tail[:], s)
	h = fold(h^binary.LittleEndian.Uint64(tail[:]), hashB^length)
	return fold(h, hashA)
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// compareKeys orders keys by namespace, then by name.
func compareKeys(a, b api.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
