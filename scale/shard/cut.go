package shard

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/leatproject/leat/api/hashrange"
)

// cut returns the ranges of n members, by their seats 0 to n-1. They do not overlap, and together they have all hashes.
// Each member has the same number of hashes; that of seat 0 may differ by less than n. The result depends only on n.
// One more member takes 1/(n+1) of all hashes, in equal parts from the others, and the others keep the rest. A member
// has at most (n-1)/2 + 1/n ranges on average, and at most 2n (4 of 5 members, 10 of 10, 88 of 50). The time is
// proportional to n².
//
// The last member to join took the end of each earlier member's ranges. So a cut for n members contains the history of
// n-1 joins, and no state is needed (Brinkmann, Salzwedel and Scheideler, SPAA 2000, "cut and paste").
func cut(n int) []hashrange.Set {
	if n < 1 {
		return nil
	}
	seats := []pieces{{ranges: []hashrange.Range{{}}}}
	for m := 2; m <= n; m++ {
		equal, _ := bits.Div64(1, 0, uint64(m)) // 2^64/m
		var joined pieces
		for i := range seats {
			quota := equal
			if i == 0 {
				quota = -(uint64(m-1) * equal) // modulo 2^64: everything that the others do not have
			}
			seats[i].move(&joined, seats[i].length-quota)
		}
		seats = append(seats, joined)
	}
	sets := make([]hashrange.Set, n)
	for i, s := range seats {
		sets[i] = hashrange.NewSet(s.ranges...)
	}
	return sets
}

// pieces are the ranges of one seat, in the order in which it got them.
type pieces struct {
	ranges []hashrange.Range
	length uint64 // the number of hashes, modulo 2^64
}

// move moves n hashes from the end of the last ranges.
func (p *pieces) move(to *pieces, n uint64) {
	p.length -= n
	to.length += n
	for n > 0 {
		last := &p.ranges[len(p.ranges)-1]
		size := last.To - last.From // 0 stands for 2^64
		if size != 0 && size <= n {
			to.ranges = append(to.ranges, *last)
			p.ranges = p.ranges[:len(p.ranges)-1]
			n -= size
			continue
		}
		to.ranges = append(to.ranges, hashrange.Range{From: last.To - n, To: last.To})
		last.To -= n
		n = 0
	}
}

// seated is a member with the seat that it has published, or -1.
type seated struct {
	name string
	seat int
}

// seats gives each member a seat from 0 to len(members)-1. A member keeps its published seat if there is one, so a join
// changes no other seat, and a leave changes at most one: the last member takes the free seat. Every replica with the
// same members gets the same result.
func seats(members []seated) map[string]int {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b seated) int { return cmp.Compare(a.name, b.name) })
	result := make(map[string]int, len(members))
	taken := make([]bool, len(members))
	var rest []seated
	for _, m := range members {
		if m.seat < 0 || m.seat >= len(members) || taken[m.seat] {
			rest = append(rest, m)
			continue
		}
		result[m.name], taken[m.seat] = m.seat, true
	}
	// Members that had a seat go first, so that one that joins and one that moves never exchange their seats.
	slices.SortStableFunc(rest, func(a, b seated) int { return cmp.Compare(uint(a.seat), uint(b.seat)) })
	free := 0
	for _, m := range rest {
		for taken[free] {
			free++
		}
		result[m.name], taken[free] = free, true
	}
	return result
}
