package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/runstate"
)

// Run joins the group and holds ranges until ctx ends. Then it waits until the work in its ranges has ended, deletes
// its Lease and returns nil. If the server does not answer, it returns at most RenewDeadline/3 after the later of
// its deadline and the end of the work. If the Lease is lost meanwhile, Run joins again after the work has ended.
// Errors of the server are logged, and the request is repeated. Run can be called once; another call returns an error.
func (m *Member) Run(ctx context.Context) error {
	if !m.begin() {
		return errRunTwice
	}
	defer m.timer.Stop()
	defer context.AfterFunc(ctx, m.wakeUp)()
	for !m.step(ctx) {
		m.pause()
	}
	m.logger().Info("left the group")
	return nil
}

// begin reports whether this is the first call of Run.
func (m *Member) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != runstate.Created {
		return false
	}
	m.state = runstate.Running
	m.timer = time.AfterFunc(time.Hour, m.expire) // renewed sets the time
	m.timer.Stop()
	return true
}

// pause waits for the next step.
func (m *Member) pause() {
	period := m.o.RetryPeriod
	select {
	case <-time.After(period*3/4 + mathrand.N(period/4+1)):
	case <-m.wake:
	}
}

// step does everything that is due, and sets the error of the status. It returns true when Run is over.
func (m *Member) step(ctx context.Context) (over bool) {
	m.errs = nil
	over = m.act(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Err = errors.Join(m.errs...)
	return over
}

// act does everything that is due. It returns true when Run is over.
func (m *Member) act(ctx context.Context) (over bool) {
	leaving := ctx.Err() != nil
	if m.isLost() && !m.forgetTenure() {
		return false
	}
	if m.lease == nil {
		if leaving {
			m.abandon()
			return true
		}
		m.join(ctx)
		return false
	}
	if leaving {
		ctx = context.WithoutCancel(ctx)
	}
	return m.renew(ctx, leaving)
}

// rounds is how often one step decides. The first list shows what to claim, and the second one that no other member
// claims it.
const rounds = 3

// renew renews the Lease, reads the group, and follows its changes.
func (m *Member) renew(ctx context.Context, leaving bool) (over bool) {
	next := publication{seat: m.published.seat, leaving: leaving, claims: m.claims()}
	deleting := true
	for range rounds {
		if !m.publish(ctx, next) {
			return false
		}
		group, ok := m.read(ctx)
		if !ok {
			return false
		}
		deleting = deleting && m.revokeExpired(ctx, &group)
		if next, ok = m.follow(group, leaving); !ok {
			return false
		}
		if next.equal(m.published) {
			break
		}
	}
	if leaving && m.published.claims.Empty() && m.isIdle() {
		m.remove(ctx)
		return true
	}
	return false
}

// follow decides what to do about the group. It returns what the Lease must say next, or false if this replica is not a
// member any more.
func (m *Member) follow(group []record, leaving bool) (next publication, ok bool) {
	if !slices.ContainsFunc(group, func(r record) bool { return r.name == m.name && r.uid == m.lease.UID }) {
		m.revoked(goneBecause)
		return next, false
	}
	p, changed := m.apply(view{name: m.name, leaving: leaving, group: group, published: m.published.claims})
	m.pending = p.pending
	m.tell()
	if changed {
		m.logPlan(p)
	}
	if m.report(p.foreign); m.lease == nil {
		return next, false
	}
	return publication{seat: p.seat, leaving: leaving, claims: m.claims()}, true
}

// claims returns what the Lease must claim.
func (m *Member) claims() (all hashrange.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held.Union(m.pending)
}

// isIdle reports whether no work runs.
func (m *Member) isIdle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.works) == 0
}

// join makes this replica a member, if no other rules are in the way.
func (m *Member) join(ctx context.Context) {
	group, ok := m.read(ctx)
	if !ok {
		return
	}
	m.revokeExpired(ctx, &group)
	foreign := m.foreign(group)
	m.report(foreign)
	if foreign != nil {
		return
	}
	if m.name == "" {
		m.name = m.o.Group + "-" + strings.ToLower(rand.Text()[:16])
	}
	m.published, m.pending = publication{seat: -1}, nil
	if !m.publish(ctx, m.published) {
		return
	}
	m.wakeUp()
}

// foreign returns a Lease with other rules, or nil.
func (m *Member) foreign(group []record) *record {
	i := slices.IndexFunc(group, func(r record) bool { return r.rules != rules(m.o.Field) })
	if i < 0 {
		return nil
	}
	return &group[i]
}

// report adds an error about another Lease to those of the step, and logs it if it names another one than before. A
// member that holds nothing gives its place up, so that replicas with other rules never hold ranges at the same time.
func (m *Member) report(foreign *record) {
	var err error
	name := ""
	if foreign != nil {
		name = foreign.name
		err = fmt.Errorf("%w: %s (Lease %s/%s) has %q, and this replica has %q; it takes no ranges until that Lease is gone",
			ErrRules, foreign.identity, m.o.Namespace, foreign.name, foreign.rules, rules(m.o.Field))
	}
	if err != nil && name != m.reported {
		m.logger().Error("the group has members with other rules", zap.NamedError("err", err))
	}
	m.reported = name
	m.addErr(err)
	if err != nil && m.lease != nil && m.claims().Empty() && m.isIdle() {
		m.remove(context.Background())
		m.leave()
	}
}

// goneBecause is the reason why a Lease does not exist any more.
const goneBecause = "another member saw no renewal for its duration, or a client has deleted it"

// publish writes the Lease and reports whether this replica is a member with it. A write whose answer did not arrive
// may still be on its way. The next write that succeeds makes the server refuse it, and no decision comes before that.
func (m *Member) publish(ctx context.Context, p publication) bool {
	for try := 0; ; try++ {
		began := time.Now()
		lease, err := m.write(ctx, p)
		switch {
		case err == nil && m.lease != nil && lease.UID != m.lease.UID:
			// An update of a missing Lease may create it again: the API server allows that for this kind.
			m.remove(ctx)
			m.revoked(goneBecause)
			return false
		case err == nil:
			m.lease, m.published = lease, p
			return m.renewed(began)
		case m.lease != nil && apierrors.IsNotFound(err):
			m.revoked(goneBecause)
			return false
		case try == 0 && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)):
			if m.reread(ctx) {
				continue
			}
			return false
		}
		m.failed(ctx, "cannot renew the lease", err)
		return false
	}
}

// write sends the Lease.
func (m *Member) write(ctx context.Context, p publication) (*coordinationv1.Lease, error) {
	ctx, cancel := m.limit(ctx)
	defer cancel()
	lease := m.o.lease(m.lease, m.name, p)
	if m.lease == nil {
		return m.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return m.leases.Update(ctx, lease, metav1.UpdateOptions{})
}

// reread reads the Lease after a conflict, and reports whether it is still the one of this replica. A Lease without a
// UID to compare with is one whose creation had no answer.
func (m *Member) reread(ctx context.Context) bool {
	ctx, cancel := m.limit(ctx)
	defer cancel()
	lease, err := m.leases.Get(ctx, m.key(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && m.lease != nil:
		m.revoked(goneBecause)
		return false
	case err != nil:
		m.failed(ctx, "cannot read the lease", err)
		return false
	case m.lease != nil && lease.UID != m.lease.UID:
		m.revoked("another client has replaced it")
		return false
	}
	m.lease = lease
	return true
}

// limit bounds a request: a member must have time for another attempt before its deadline.
func (m *Member) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(m.o.attempt())
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tenure; t != nil && !t.lost && t.deadline.Before(end) {
		end = t.deadline
	}
	return context.WithDeadline(ctx, end)
}

// read lists the group. A consistent list, so without a resource version.
func (m *Member) read(ctx context.Context) (group []record, ok bool) {
	ctx, cancel := m.limit(ctx)
	defer cancel()
	o := api.Options[*coordinationv1.Lease]{ListOptions: metav1.ListOptions{LabelSelector: groupLabel + "=" + m.o.Group}}
	if _, err := m.leases.List(ctx, o, func(l *coordinationv1.Lease) error {
		group = append(group, read(l))
		return nil
	}); err != nil {
		m.failed(ctx, "cannot list the group", err)
		return nil, false
	}
	m.seen.note(group, time.Now())
	m.complain(group)
	return group, true
}

// complain adds the errors of wrong Leases to those of the step, and logs the new ones.
func (m *Member) complain(group []record) {
	before := m.complaints
	m.complaints = nil
	for _, r := range group {
		for _, c := range []struct {
			err  error
			text string
		}{
			{r.wrong, "cannot read the claims of a member; it counts as one that claims everything"},
			{r.long, "the lease of a member is valid for too long; it counts as one of an hour"},
		} {
			if c.err == nil {
				continue
			}
			m.complaints = append(m.complaints, c.err.Error())
			m.addErr(c.err)
			if !slices.Contains(before, c.err.Error()) {
				m.logger().Error(c.text, zap.String("member", r.identity), zap.String("lease", r.name), zap.NamedError("err", c.err))
			}
		}
	}
}

// revokeExpired deletes the Leases that have expired, unless their members renew them at the last moment: the server
// decides which write came first. Those that are gone leave the group. All deletes together take no longer than one
// attempt, because the next renewal waits for them; the next step goes on. revokeExpired returns false if a delete has
// failed. A Lease that cannot be deleted does not keep the others.
func (m *Member) revokeExpired(ctx context.Context, group *[]record) (ok bool) {
	ok = true
	attempt, cancel := m.limit(ctx)
	defer cancel()
	for _, r := range m.seen.expired(*group, m.name, m.o.LeaseDuration, time.Now()) {
		err := m.leases.Delete(attempt, api.Key{Namespace: m.o.Namespace, Name: r.name}, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &r.uid, ResourceVersion: &r.version},
		})
		switch {
		case err == nil:
			m.logger().Warn("a member has not renewed its lease; its ranges are free",
				zap.String("member", r.identity), zap.String("lease", r.name))
			*group = slices.DeleteFunc(*group, func(other record) bool { return other.name == r.name })
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			m.failed(ctx, "cannot delete the expired lease "+r.name, err)
			ok = false
		}
		if attempt.Err() != nil {
			return false
		}
	}
	return ok
}

// revoked ends the tenure because the Lease is gone.
func (m *Member) revoked(why string) {
	m.logger().Error("lost the lease", zap.String("lease", m.name), zap.String("because", why))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose()
}

// forgetTenure forgets a tenure that is lost, if all work of it has ended. Otherwise it returns false.
func (m *Member) forgetTenure() bool {
	if !m.isIdle() {
		m.addErr(fmt.Errorf("%w, and its work has not ended", ErrLost))
		return false
	}
	m.logger().Info("the work of the lost lease has ended", zap.String("lease", m.name))
	m.remove(context.Background())
	m.leave()
	return true
}

// leave forgets the Lease and the ranges. No work runs.
func (m *Member) leave() {
	m.lease, m.name, m.published, m.pending = nil, "", publication{}, nil
	m.mu.Lock()
	m.tenure, m.held, m.admitted = nil, nil, nil
	m.status.WaitingSince, m.status.ReleasingSince = time.Time{}, time.Time{}
	m.timer.Stop()
	m.mu.Unlock()
	m.tell()
}

// abandon deletes a Lease whose creation had no answer.
func (m *Member) abandon() {
	if m.name != "" {
		m.remove(context.Background())
	}
}

// remove deletes the Lease. If that fails, the Lease expires.
func (m *Member) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.o.attempt())
	defer cancel()
	if err := m.leases.Delete(ctx, m.key(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		m.failed(ctx, "cannot delete the lease; it will expire", err)
	}
}

func (m *Member) key() api.Key { return api.Key{Namespace: m.o.Namespace, Name: m.name} }

// failed logs an error of a request, unless the end of Run is the reason.
func (m *Member) failed(ctx context.Context, what string, err error) {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	m.logger().Warn(what, zap.NamedError("err", err))
	m.addErr(fmt.Errorf("shard: %s: %w", what, err))
}

// addErr adds an error to those of the step, once.
func (m *Member) addErr(err error) {
	if err != nil && !slices.ContainsFunc(m.errs, func(other error) bool { return other.Error() == err.Error() }) {
		m.errs = append(m.errs, err)
	}
}

// logPlan writes an entry about a change of the group or of the held ranges.
func (m *Member) logPlan(p plan) {
	m.logger().Info("ranges",
		zap.Int("members", p.members), zap.String("cut", p.version), zap.Float64("target", p.target.Share()),
		zap.Float64("held", p.held.Share()), zap.Float64("releasing", p.held.Minus(p.admitted).Share()))
}
