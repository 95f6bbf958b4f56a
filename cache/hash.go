package cache

import (
	"math/bits"
	"strings"

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
	return fold(hashString(hashString(hashA, key.Namespace), key.Name), hashA)
}

// hashString folds a string into a hash, eight bytes at a time and the last ones with its length, each time by the upper
// and the lower half of a product.
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

// lastWord returns the last eight bytes of a string, or, together with its length, what tells a shorter one from others.
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
