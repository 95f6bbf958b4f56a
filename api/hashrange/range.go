package hashrange

import (
	"fmt"
	"math"
)

// Field is the field of an object whose hash decides in which range the object is, as the API server writes it.
type Field string

// These are the fields that the API server can hash.
const (
	UID       Field = "object.metadata.uid"
	Namespace Field = "object.metadata.namespace" // "" for an object without a namespace
)

const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// Hash returns the hash of a UID or of a namespace: FNV-1a with 64 bits, as KEP-5866 says. Names that differ only at
// the end have hashes that are close together, so namespaces are distributed less evenly than UIDs.
func Hash[S ~string | ~[]byte](value S) uint64 {
	h := fnvOffset
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * fnvPrime
	}
	return h
}

// Range is a half-open range of hashes: From belongs to it, and To does not. A To of 0 stands for 2^64, so the zero
// value has all hashes. A range whose To is not 0 and not larger than From is empty.
type Range struct{ From, To uint64 }

// last returns the largest hash of a range that is not empty.
func (r Range) last() uint64 { return r.To - 1 }

// Empty reports whether the range has no hashes.
func (r Range) Empty() bool { return r.To != 0 && r.To <= r.From }

// Contains reports whether a hash belongs to the range.
func (r Range) Contains(hash uint64) bool { return hash >= r.From && hash <= r.last() && !r.Empty() }

// String returns the bounds as the API server writes them, with a "-" between: "0x0000000000000000-0x10000000000000000"
// has all hashes.
func (r Range) String() string { return fmt.Sprintf("0x%016x-%s", r.From, r.end()) }

// end returns the text of To.
func (r Range) end() string {
	if r.To == 0 {
		return "0x10000000000000000"
	}
	return fmt.Sprintf("0x%016x", r.To)
}

// share returns the part of all hashes that a range has.
func (r Range) share() float64 {
	if r.Empty() {
		return 0
	}
	return (float64(r.last()-r.From) + 1) / (float64(math.MaxUint64) + 1)
}
