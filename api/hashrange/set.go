package hashrange

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of hashes: ranges in ascending order that neither overlap nor touch. Nil is the empty set. Make a Set
// with NewSet, Parse or the methods of a Set, and do not change it.
type Set []Range

// NewSet returns the hashes that at least one of the ranges has.
func NewSet(ranges ...Range) Set {
	sorted := slices.DeleteFunc(slices.Clone(ranges), Range.Empty)
	slices.SortFunc(sorted, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	var s Set
	for _, r := range sorted {
		n := len(s)
		switch {
		case n == 0 || s[n-1].To != 0 && s[n-1].To < r.From:
			s = append(s, r)
		case s[n-1].last() < r.last():
			s[n-1].To = r.To
		}
	}
	return s
}

// All returns the set of all hashes.
func All() Set { return Set{Range{}} }

// Empty reports whether the set has no hashes.
func (s Set) Empty() bool { return len(s) == 0 }

// Equal reports whether both sets have the same hashes.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }

// Contains reports whether the set has a hash.
func (s Set) Contains(hash uint64) bool {
	i, found := slices.BinarySearchFunc(s, hash, func(r Range, hash uint64) int { return cmp.Compare(r.From, hash) })
	return found || i > 0 && s[i-1].Contains(hash)
}

// Union returns the hashes that at least one of the sets has.
func (s Set) Union(other Set) Set { return NewSet(slices.Concat(s, other)...) }

// Intersect returns the hashes that both sets have.
func (s Set) Intersect(other Set) Set {
	var both Set
	for i, j := 0, 0; i < len(s) && j < len(other); {
		a, b := s[i], other[j]
		if from := max(a.From, b.From); from <= min(a.last(), b.last()) {
			both = append(both, Range{From: from, To: min(a.last(), b.last()) + 1})
		}
		if a.last() <= b.last() {
			i++
		} else {
			j++
		}
	}
	return both
}

// Minus returns the hashes of s that other does not have.
func (s Set) Minus(other Set) Set { return s.Intersect(other.complement()) }

func (s Set) complement() Set {
	var rest Set
	next, over := uint64(0), false // the smallest hash that is not decided yet; over means that all are decided
	for _, r := range s {
		if r.From > next {
			rest = append(rest, Range{From: next, To: r.From})
		}
		next, over = r.To, r.To == 0
	}
	if !over {
		rest = append(rest, Range{From: next})
	}
	return rest
}

// Share returns the part of all hashes that the set has, from 0 to 1.
func (s Set) Share() float64 {
	var sum float64
	for _, r := range s {
		sum += r.share()
	}
	return sum
}

// String returns the ranges with commas between. Parse reads it again.
func (s Set) String() string {
	texts := make([]string, len(s))
	for i, r := range s {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// Parse reads the text of a set. The error names the part that is wrong.
func Parse(text string) (Set, error) {
	if text == "" {
		return nil, nil
	}
	var ranges []Range
	for part := range strings.SplitSeq(text, ",") {
		from, to, _ := strings.Cut(part, "-")
		r := Range{}
		var err error
		if r.From, err = strconv.ParseUint(strings.TrimPrefix(from, "0x"), 16, 64); err == nil && to != (Range{}).end() {
			r.To, err = strconv.ParseUint(strings.TrimPrefix(to, "0x"), 16, 64)
		}
		if err != nil || r.Empty() || r.String() != part {
			return nil, fmt.Errorf("hashrange: %.60q is not a range such as %q", part, Range{To: 1 << 63})
		}
		ranges = append(ranges, r)
	}
	s := NewSet(ranges...)
	if s.String() != text {
		return nil, fmt.Errorf("hashrange: the ranges in %.60q are not in order, or they overlap or touch", text)
	}
	return s, nil
}

// Selector returns the shardSelector (KEP-5866) of the objects whose field has a hash in the set. It panics if the set
// is empty, because a selector cannot say that.
func (s Set) Selector(f Field) string {
	if s.Empty() {
		panic("hashrange: the empty set has no selector")
	}
	texts := make([]string, len(s))
	for i, r := range s {
		texts[i] = fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", f, r.From, r.end())
	}
	return strings.Join(texts, " || ")
}
