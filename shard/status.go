package shard

import (
	"cmp"
	"slices"
	"time"

	"github.com/leatproject/leat/shard/hashrange"
)

// Status is the state of a member at its last step, for people and metrics.
type Status struct {
	Identity string
	// Lease is the name of the Lease, or "" while this replica is not a member.
	Lease string
	// Deadline is when this replica must stop its work if it cannot renew.
	Deadline time.Time
	// Cut is a text that all members have in common that see the same group.
	Cut string
	// Members are all members, in the order of their identities.
	Members []MemberStatus
	// Target are the ranges that this replica should have, Held those that it holds, and Releasing those of Held in
	// which no work begins any more, because another member should have them.
	Target, Held, Releasing hashrange.Set
	// Work is the number of reconciles that run now.
	Work int
	// Acquired, Released and Lost count hand-overs to this replica, hand-overs from it, and lost Leases.
	Acquired, Released, Lost int64
	// Err is the reason why something is late: the errors of all requests of the last step, of Leases that cannot be
	// read, and errors that match ErrRules or ErrLost. It is nil after a step without an error.
	Err error
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
		s.Lease, s.Cut, s.Members, s.Target = "", "", nil, nil
	} else {
		s.Deadline = m.tenure.deadline
	}
	return s
}

// note records a decision.
func (s *Status) note(v view, p plan) {
	s.Lease, s.Cut, s.Target, s.Members = v.name, p.version, p.target, s.Members[:0:0]
	for _, r := range v.group {
		s.Members = append(s.Members, MemberStatus{Identity: r.identity, Claims: r.claims, Leaving: r.leaving})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Identity, b.Identity) })
}
