package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leatproject/leat/api/hashrange"
)

// Status is the state of a member at its last step, for people and metrics.
type Status struct {
	Group, Identity string
	// Lease is the name of the Lease, or "" while this replica is not a member.
	Lease string
	// Renewed is when the last successful renewal began, and Deadline when this replica must stop its work if it cannot
	// renew.
	Renewed, Deadline time.Time
	// Cut is a text that all members have in common that see the same group.
	Cut string
	// Members are all members, in the order of their identities.
	Members []MemberStatus
	// Target are the ranges that this replica should have, Held those that it holds, and Releasing those of Held in
	// which no work begins any more, because another member should have them.
	Target, Held, Releasing hashrange.Set
	// Waiting are the ranges of Target that this replica does not hold, by the reason. WaitingSince is when it began to
	// wait, and ReleasingSince when it began to release. They are zero if no range waits.
	Waiting                      []Wait
	WaitingSince, ReleasingSince time.Time
	// Work is the number of reconciles that run now.
	Work int
	// Acquired, Released and Lost count hand-overs to this replica, hand-overs from it, and lost Leases.
	Acquired, Released, Lost int64
	// Err is the reason why something is late: the errors of all requests of the last step, of Leases that cannot be
	// read, and errors that match ErrRules or ErrLost. It is nil after a step without an error.
	Err error
}

// Wait says why this replica does not hold some ranges that it should have.
type Wait struct {
	Ranges  hashrange.Set
	Because string
}

// MemberStatus is a member as this replica sees it.
type MemberStatus struct {
	Identity string
	// Claims are the ranges that no other member may have.
	Claims hashrange.Set
	// Leaving says that the member is about to end.
	Leaving bool
}

// Status returns the current state. It does not block.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.status
	s.Members = slices.Clone(s.Members)
	s.Held, s.Releasing, s.Work = m.held, m.held.Minus(m.admitted), len(m.works)
	if m.tenure == nil {
		s.Lease, s.Cut, s.Members, s.Target, s.Waiting = "", "", nil, nil, nil
	} else if s.Deadline = m.tenure.deadline; !s.Deadline.IsZero() {
		s.Renewed = s.Deadline.Add(-m.o.RenewDeadline)
	}
	return s
}

// note records a decision. releasing says that ranges wait for the end of their work.
func (s *Status) note(v view, p plan, releasing bool) {
	s.Lease, s.Cut, s.Target, s.Members = v.name, p.version, p.target, s.Members[:0:0]
	for _, r := range v.group {
		s.Members = append(s.Members, MemberStatus{Identity: r.identity, Claims: r.claims, Leaving: r.leaving})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Identity, b.Identity) })
	s.Waiting = v.waits(p)
	since(&s.WaitingSince, len(s.Waiting) > 0)
	since(&s.ReleasingSince, releasing)
}

// since keeps the time at which a wait began.
func since(t *time.Time, waits bool) {
	if !waits {
		*t = time.Time{}
	} else if t.IsZero() {
		*t = time.Now()
	}
}

// waits returns why the member does not hold all ranges that it should have.
func (v view) waits(p plan) (all []Wait) {
	missing := p.target.Minus(p.held)
	add := func(ranges hashrange.Set, format string, a ...any) {
		if ranges = ranges.Intersect(missing); !ranges.Empty() {
			all = append(all, Wait{ranges, fmt.Sprintf(format, a...)})
			missing = missing.Minus(ranges)
		}
	}
	if f := p.foreign; f != nil {
		add(missing, "%s (Lease %s) has other rules", f.identity, f.name)
	}
	for _, r := range v.group {
		switch {
		case r.name == v.name:
		case r.wrong != nil:
			add(r.claims, "the claims of %s (Lease %s) cannot be read", r.identity, r.name)
		case r.leaving:
			add(r.claims, "%s is leaving and still works in them", r.identity)
		default:
			add(r.claims, "%s has not released them", r.identity)
		}
	}
	add(missing, "the next list of the group confirms the claim")
	return all
}

// String returns one line for people.
func (s Status) String() string {
	var b strings.Builder
	if s.Lease == "" {
		fmt.Fprintf(&b, "%s is not a member of the group %s", s.Identity, s.Group)
	} else {
		fmt.Fprintf(&b, "%s holds %s; the group %s has %s", s.Identity, describe(s.Held), s.Group, count(len(s.Members), "member"))
	}
	for _, w := range s.Waiting {
		fmt.Fprintf(&b, "; waits for %s, because %s", describe(w.Ranges), w.Because)
	}
	if !s.Releasing.Empty() {
		fmt.Fprintf(&b, "; releases %s after %s", describe(s.Releasing), count(s.Work, "reconcile"))
	}
	if s.Err != nil {
		b.WriteString("; " + strings.ReplaceAll(s.Err.Error(), "\n", "; "))
	}
	return b.String()
}

func describe(s hashrange.Set) string {
	return fmt.Sprintf("%s (%.1f %% of the hashes)", count(len(s), "range"), 100*s.Share())
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
