package shard

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/runstate"
)

// ErrRules matches the error in Status.Err while a member of the group has other rules: another Options.Field, or
// another version of leat that divides in another way. The error names it.
var ErrRules = errors.New("shard: the group has members with other rules")

// errNotJoined is the error of Ready if no request has failed yet.
var errNotJoined = errors.New("shard: this replica has not joined the group yet")

// errRunTwice is the error of a second call of Run.
var errRunTwice = errors.New("shard: Run was called before; a Member runs once")

// Member is this replica in its group. A manager runs it: see Placement of package manager, with the group Others.
type Member struct {
	o      Options
	leases *apiclient.TypedClient[*coordinationv1.Lease]
	joined chan struct{}
	wake   chan struct{} // has an element if Run should go on at once

	// Only Run uses the fields below.
	lease     *coordinationv1.Lease // nil while this replica is not a member
	name      string                // of the Lease; changes with each tenure
	published publication           // by the last write that succeeded
	pending   hashrange.Set
	seen      observations
	timer     *time.Timer // fires at the deadline of the tenure
	reported  string      // the Lease with other rules that the log has named
	errs      []error     // of the step that runs

	complaints []string // the errors of other Leases that the log has

	mu        sync.Mutex // guards the fields below
	log       *zap.Logger
	state     runstate.State
	tenure    *tenure
	held      hashrange.Set // followers have them, or will get them next
	admitted  hashrange.Set
	works     map[*work]struct{}
	followers []*following
	status    Status
}

// following is a follower and the ranges that it got last.
type following struct {
	hashrange.Follower
	got     hashrange.Set
	removed bool
}

// New returns a Member for the group on a server. It reports all invalid options in one error. The client needs the
// verbs get, list, create, update and delete on leases in the namespace.
func New(c *apiclient.Client, o Options) (*Member, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Member{
		o: o, leases: apiclient.NewTyped[*coordinationv1.Lease](c, leases, o.Namespace),
		log: cmp.Or(o.Logger, zap.NewNop()), joined: make(chan struct{}), wake: make(chan struct{}, 1),
		seen: observations{}, works: map[*work]struct{}{}, status: Status{Group: o.Group, Identity: o.Identity},
	}, nil
}

// Name returns "shard-" and the name of the group, for a manager.
func (m *Member) Name() string { return "shard-" + m.o.Group }

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. It must be called before
// Run.
func (m *Member) UseLogger(log *zap.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.o.Logger == nil {
		m.log = log
	}
}

// NeedLeaderElection returns false: each replica is a member of the group. See manager.LeaderElectionRunnable.
func (m *Member) NeedLeaderElection() bool { return false }

// Synced returns a channel that is closed when this replica has joined the group for the first time. It may not hold a
// range yet.
func (m *Member) Synced() <-chan struct{} { return m.joined }

// NotSynced returns the reason why this replica has not joined the group, or nil if it has joined or the reason is
// unknown.
func (m *Member) NotSynced() error {
	if runstate.IsClosed(m.joined) {
		return nil
	}
	return m.Status().Err
}

// Ready is a check for /readyz, which a manager adds by itself. It fails until this replica has joined the group for
// the first time. It passes if members with other rules keep the replica out, because a rolling update ends these
// members only when the new replicas are ready.
func (m *Member) Ready(context.Context) error {
	err := m.NotSynced()
	switch {
	case runstate.IsClosed(m.joined), errors.Is(err, ErrRules):
		return nil
	case err != nil:
		return err
	}
	return errNotJoined
}

// Follow adds a follower, before Run or while it runs. Run calls it. The returned function removes it; a call may still
// be in flight. Neither blocks.
func (m *Member) Follow(f hashrange.Follower) (remove func()) {
	added := &following{Follower: f}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followers = append(m.followers, added)
	m.wakeUp()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		added.removed = true
	}
}

// wakeUp makes Run go on at once.
func (m *Member) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// logger returns the logger with the fields of every entry.
func (m *Member) logger() *zap.Logger {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.With(zap.String("group", m.o.Group), zap.String("identity", m.o.Identity))
}

// isLost reports whether the tenure is over, and records it if the deadline has passed.
func (m *Member) isLost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tenure != nil && !m.isValid(m.tenure)
}

// expire is called at the deadline. It ends the contexts of all work, also while Run waits for a request.
func (m *Member) expire() { m.isLost() }

// lose ends the tenure, and makes Run go on. The caller holds the lock.
func (m *Member) lose() {
	if m.tenure == nil {
		m.tenure = &tenure{}
	}
	if m.tenure.lost {
		return
	}
	m.tenure.lost, m.admitted = true, nil
	m.status.Lost++
	since(&m.status.ReleasingSince, !m.held.Empty())
	for w := range m.works {
		w.cancel(ErrLost)
	}
	m.wakeUp()
}

// renewed records a successful renewal that began at a time. It returns false if the tenure was over before the answer
// arrived.
func (m *Member) renewed(began time.Time) bool {
	first, ok := m.extend(began)
	if first {
		m.logger().Info("joined the group", zap.String("lease", m.name))
	}
	return ok
}

// extend sets the deadline of the tenure, unless the tenure is over. It reports whether this is the first deadline.
func (m *Member) extend(began time.Time) (first, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first = m.tenure == nil; first {
		m.tenure = &tenure{}
		if !runstate.IsClosed(m.joined) {
			close(m.joined)
		}
	} else if !m.isValid(m.tenure) {
		return false, false
	}
	m.tenure.deadline = began.Add(m.o.RenewDeadline)
	m.timer.Reset(time.Until(m.tenure.deadline))
	return first, true
}

// apply decides and records the decision. Both happen under the lock, so that no work begins in a range that is about
// to be released.
func (m *Member) apply(v view) (p plan, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v.held, v.admitted, v.busy = m.held, m.admitted, m.busy
	p = v.decide()
	changed = !p.held.Equal(m.held) || p.version != m.status.Cut
	if !m.isValid(m.tenure) {
		p.held, p.admitted = m.held, nil // Run notices it next
	}
	m.status.Acquired += countNew(m.held, p.held)
	m.status.Released += countNew(p.held, m.held)
	m.held, m.admitted = p.held, p.admitted
	m.status.note(v, p, !m.held.Equal(m.admitted))
	return p, changed
}

// countNew returns 1 if after has hashes that before does not have.
func countNew(before, after hashrange.Set) int64 {
	if after.Minus(before).Empty() {
		return 0
	}
	return 1
}

// tell calls the followers whose ranges have changed.
func (m *Member) tell() {
	m.mu.Lock()
	held := m.held
	m.followers = deleteRemoved(m.followers)
	followers := m.followers
	m.mu.Unlock()
	for _, f := range followers {
		if !f.got.Equal(held) {
			f.got = held
			f.Follow(held)
		}
	}
}

// deleteRemoved returns a new slice of the followers that are not removed.
func deleteRemoved(all []*following) (kept []*following) {
	for _, f := range all {
		if !f.removed {
			kept = append(kept, f)
		}
	}
	return kept
}
