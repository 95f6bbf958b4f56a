package shard

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/leatproject/leat/api/hashrange"
)

// view is everything that a member knows when it decides.
type view struct {
	name      string        // of its own Lease
	leaving   bool          // the member wants to end
	group     []record      // a consistent list of the Leases, its own among them
	published hashrange.Set // the claims in its own Lease, which was written before the list began
	held      hashrange.Set // the ranges that no other member works on
	admitted  hashrange.Set // the part of held in which a reconcile may begin
	busy      func(hashrange.Range) bool
}

// plan is a decision. The claims that follow from it are held and pending together.
type plan struct {
	seat     int
	members  int
	version  string        // of the cut: equal for members that see the same group
	target   hashrange.Set // what this member should have
	held     hashrange.Set
	admitted hashrange.Set // the part of held in which a reconcile may begin
	pending  hashrange.Set // claimed, and perhaps also claimed by another member
	foreign  *record       // a Lease with other rules
}

// decide is the protocol. A member holds a range if its Lease claimed it before a consistent list began, and no other
// Lease in this list claims it. So of two members that claim one range, the one whose claim was written later sees the
// claim of the other. Claims of a Lease count until the Lease is changed or deleted.
func (v view) decide() plan {
	p := plan{seat: -1}
	var others hashrange.Set
	var members []seated
	own := v.own()
	for i, r := range v.group {
		if r.name != v.name {
			others = others.Union(r.claims)
		}
		switch {
		case r.rules != own.rules:
			p.foreign = &v.group[i]
		case !r.leaving && (r.name != v.name || !v.leaving):
			members = append(members, seated{r.name, r.seat})
		}
	}
	p.members = len(members)
	positions := seats(members)
	p.version = version(positions)
	if seat, ok := positions[v.name]; ok {
		p.seat, p.target = seat, cut(len(members))[seat]
	}
	// A range that is closed stays closed until it is released, also if the member wants it again. Keys were dropped
	// meanwhile, and only a follower that gets the range again adds them.
	p.admitted = v.admitted.Intersect(p.target)
	released := slices.DeleteFunc(v.held.Minus(p.admitted), v.busy)
	p.held = v.held.Minus(released)
	if p.foreign == nil {
		confirmed := p.target.Intersect(v.published).Minus(others).Minus(v.held)
		p.held, p.admitted = p.held.Union(confirmed), p.admitted.Union(confirmed)
		p.pending = p.target.Minus(others).Minus(p.held)
	}
	// A claim that also another member has stays, unless the member does not want the range any more. If both see the
	// same group, only one of them wants it.
	p.pending = p.pending.Union(v.published.Intersect(p.target)).Minus(p.held)
	return p
}

// own returns the member's own record.
func (v view) own() record {
	i := slices.IndexFunc(v.group, func(r record) bool { return r.name == v.name })
	return v.group[i]
}

// version returns a short text that is equal for equal seats.
func version(positions map[string]int) string {
	names := make([]string, len(positions))
	for name, seat := range positions {
		names[seat] = name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(names, "\n"))) // a hash never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
