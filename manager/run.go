package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// Run starts everything, group by group, and ends it in the opposite order when ctx ends or something fails. It returns
// when nothing is left of what it started, or when the grace period is over: nil if ctx ended and everything did, and
// otherwise the joined errors of what failed, in the order in which it did. A *GraceError among them names what did not
// end and may be running still; a program should end after it. It has to after the loss of the lease, which nothing is
// waited for, whenever it comes. A manager runs once.
// It corresponds to Start of controller-runtime's manager.
func (m *Manager) Run(ctx context.Context) error {
	running, halt := context.WithCancel(ctx)
	defer halt()
	if err := m.begin(context.WithoutCancel(ctx), halt); err != nil {
		return err
	}
	m.start(running)
	<-running.Done()
	return m.end()
}

// begin makes members launchable. What they run with outlives the context that Run was called with: who ends when is
// for end to say.
func (m *Manager) begin(ctx context.Context, halt context.CancelFunc) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != created {
		return ErrRunning
	}
	m.life, m.halt = running, halt
	m.launch = func(r *Registration) {
		m.log.Info("runnable started", zap.String("name", r.name), zap.Stringer("group", r.group))
		var own context.Context
		own, r.cancel = context.WithCancel(ctx)
		go m.supervise(own, r)
	}
	return nil
}

// start brings up one group after the other, as long as ctx lasts.
func (m *Manager) start(ctx context.Context) {
	for _, g := range []Group{Servers, Caches, Others} {
		if !m.startGroup(ctx, g) {
			return
		}
		if late := m.awaitReady(ctx, g); len(late) > 0 {
			m.failSync(late)
			return
		}
	}
	m.startGroup(ctx, WarmUp)
	if m.o.Elector == nil {
		m.release(ctx)
		return
	}
	for _, r := range m.awaitReady(ctx, WarmUp) {
		m.log.Warn("campaigning before it is warm", zap.String("name", r.name), zap.NamedError("err", whyNotSynced(r.runnable)))
	}
	m.startGroup(ctx, election)
}

// release lets those begin who wait for this replica to lead.
func (m *Manager) release(ctx context.Context) {
	if m.startGroup(ctx, Elected) {
		close(m.elected)
		m.log.Info("leading")
	}
}

// startGroup launches those of a group who are there, and lets others be launched as they come. It tells whether it did:
// not if the manager is ending.
func (m *Manager) startGroup(ctx context.Context, g Group) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || m.life != running || m.started[g] {
		return false
	}
	m.started[g] = true
	for _, r := range m.members {
		if r.group == g {
			m.launch(r)
		}
	}
	return true
}

// awaitReady waits until everybody in a group is ready, those included that come meanwhile, or until ctx ends. It returns
// those who were not when the time was up.
func (m *Manager) awaitReady(ctx context.Context, g Group) (late []*Registration) {
	patience := ctx
	if m.o.SyncTimeout > 0 {
		var stop context.CancelFunc
		patience, stop = context.WithTimeout(ctx, m.o.SyncTimeout)
		defer stop()
	}
	for ctx.Err() == nil {
		over := patience.Err() != nil
		late = m.unready(g) // asked anew when the time is up, for the others may have become ready meanwhile
		if len(late) == 0 {
			return nil
		}
		if over && ctx.Err() == nil { // or it is not the patience that has ended
			return late
		}
		select {
		case <-late[0].ready:
		case <-late[0].done: // removed, or over; if it failed, ctx has ended
		case <-patience.Done():
		}
	}
	return nil
}

// unready returns those of a group who are to be waited for.
func (m *Manager) unready(g Group) []*Registration {
	return m.membersWhere(func(r *Registration) bool {
		return r.group == g && r.ready != nil && !isClosed(r.ready)
	})
}

// failSync makes Run fail because of those whose time is up.
func (m *Manager) failSync(late []*Registration) {
	var reasons []error
	for _, r := range late {
		reasons = append(reasons, &SyncError{Name: r.name, Timeout: m.o.SyncTimeout, Err: whyNotSynced(r.runnable)})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail(errors.Join(reasons...))
}

// elect is what the group election runs.
func (m *Manager) elect(ctx context.Context) error {
	return m.o.Elector.Run(ctx, func(leading context.Context) error {
		m.release(leading)
		<-leading.Done() // when the workers have ended, unless Run leaves them behind: until then the lease can be lost
		m.stepDown(context.Cause(leading))
		// The lease is given up when this returns, which is not before the last worker has, whatever the grace period.
		m.awaitEnd(nil, WarmUp, Elected)
		return nil
	})
}

// stepDown notes that this replica leads no more. If nobody told it to, Run fails, and waits for nobody: another replica may
// lead by now, and what does not end with its context has to end with the process.
func (m *Manager) stepDown(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told[election] {
		return
	}
	if errors.Is(cause, context.Canceled) {
		cause = errOver
	}
	m.lost = fmt.Errorf("manager: no longer the leader: %w", cause)
	m.fail(m.lost)
	if m.hurry != nil {
		m.hurry()
	}
}

// end tells everybody to end, group by group, and waits for that as long as it may.
func (m *Manager) end() error {
	grace, cancel := m.engage()
	defer cancel()
	if !m.leads() {
		m.tell(election) // which nobody needs to win any more
	}
	for _, groups := range endings {
		m.tell(groups...)
		if !m.awaitEnd(grace.Done(), groups...) {
			return m.giveUp(grace)
		}
	}
	return m.conclude()
}

// engage lets nobody start any more, and returns a context that ends with the grace period, or with the lease.
func (m *Manager) engage() (context.Context, context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life = ending
	period := m.o.GracePeriod
	if m.lost != nil {
		period = DoNotWait
	}
	m.log.Info("ending", zap.Duration("grace", period), zap.NamedError("err", errors.Join(m.failures...)))
	grace, cancel := context.WithCancel(context.Background())
	m.hurry = cancel
	if period == DoNotWait {
		cancel()
	} else if period > 0 {
		grace, cancel = context.WithTimeout(grace, period)
	}
	return grace, cancel
}

// leads tells whether this replica has begun to lead.
func (m *Manager) leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started[Elected]
}

// tell tells all of some groups to end.
func (m *Manager) tell(groups ...Group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range groups {
		m.told[g] = true
	}
	for _, r := range slices.Clone(m.members) { // end may drop one
		if slices.Contains(groups, r.group) {
			r.end()
		}
	}
}

// awaitEnd waits until nobody is left in some groups. It returns whether that is so; otherwise the time is up.
func (m *Manager) awaitEnd(over <-chan struct{}, groups ...Group) bool {
	for {
		expired := isClosed(over)
		left := m.membersWhere(func(r *Registration) bool { return slices.Contains(groups, r.group) })
		if len(left) == 0 {
			return true
		}
		if expired {
			return false
		}
		select {
		case <-left[0].done:
		case <-over:
		}
	}
}

// giveUp ends a Run that waits no longer: it tells those who have not been told yet. If the time is up, and not the lease
// lost, it names those who were told and have not ended.
func (m *Manager) giveUp(grace context.Context) error {
	if errors.Is(grace.Err(), context.DeadlineExceeded) {
		late := &GraceError{Period: m.o.GracePeriod}
		for _, r := range m.membersWhere(func(r *Registration) bool { return m.told[r.group] }) {
			late.Names = append(late.Names, r.name)
		}
		m.mu.Lock()
		m.failures = append(m.failures, late)
		m.mu.Unlock()
	}
	m.tell(slices.Concat(endings...)...)
	return m.conclude()
}

// conclude returns what Run does.
func (m *Manager) conclude() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life = ended
	return errors.Join(m.failures...)
}

// membersWhere returns the members that f picks, which is called with the lock held.
func (m *Manager) membersWhere(f func(*Registration) bool) []*Registration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var picked []*Registration
	for _, r := range m.members {
		if f(r) {
			picked = append(picked, r)
		}
	}
	return picked
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
