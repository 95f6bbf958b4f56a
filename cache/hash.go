package cache

import (
	"math/bits"
	"strings"

	"github.com/leatproject/leat/api"
)

// hashA is the seed and hashB the multiplier: two odd numbers whose bits have no pattern.
const (
	hashA = 0xa0b4_d1e6_93c7_f58b
	hashB = 0xe7c5_8fa9_d2b3_96f1
)

// hashKey returns the hash that decides the order of iteration. Unlike the hash of a Go map, it is the same in every
// process, because a simulation that is replayed from its seed must see the same order again. The price: a user who
// chooses the names of objects can make them collide. This is acceptable. Among n colliding keys, a look-up costs O(log
// n) and a change copies n entries; other objects get no slower.
func hashKey(key api.Key) uint64 {
	return fold(hashString(hashString(hashA, key.Namespace), key.Name), hashA)
}

// hashString folds a string into a hash, eight bytes at a time. The last step includes the length. Each step multiplies
// and combines the upper and lower half of the product.
func hashString(h uint64, s string) uint64 {
	rest := s
	for len(rest) > 8 {
		h = fold(h^word(rest), hashB)
		rest = rest[8:]
	}
	return fold(h^lastWord(s), hashB^uint64(len(s)))
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// lastWord returns the last eight bytes of a string. For a shorter string, its result and the length together identify
// the string.
func lastWord(s string) uint64 {
	switch n := len(s); {
	case n >= 8:
		return word(s[n-8:])
	case n >= 4:
		return half(s) | half(s[n-4:])<<32
	case n > 0:
		return uint64(s[0]) | uint64(s[n/2])<<8 | uint64(s[n-1])<<16
	default:
		return 0
	}
}

func word(s string) uint64 { return half(s) | half(s[4:])<<32 }

func half(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// compareKeys orders keys by namespace, then by name.
func compareKeys(a, b api.Key) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace, b.Namespace)
	}
	return strings.Compare(a.Name, b.Name)
}
