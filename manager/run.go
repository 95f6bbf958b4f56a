package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/internal/runstate"
)

// Run starts everything, group by group, and ends it in reverse order when ctx ends or a runnable fails. It returns
// when all runnables have ended, or after the grace period. It returns nil if ctx ended and all runnables ended without
// an error. Otherwise it returns the joined errors, in the order in which they occurred. A *GraceError among them names
// the runnables that did not end; the program should then exit. After losing the lease, at any time, Run returns
// without waiting; the program must then exit. A manager runs once. It corresponds to Start of controller-runtime's
// manager.
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

// begin lets the members start. Their contexts do not end with the context of Run, because end decides who ends when.
func (m *Manager) begin(ctx context.Context, halt context.CancelFunc) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != runstate.Created {
		return ErrRunning
	}
	m.life, m.halt = runstate.Running, halt
	m.launch = func(r *RunnableRegistration) {
		m.log.Info("runnable started", zap.String("name", r.name), zap.Stringer("group", r.group))
		var own context.Context
		own, r.cancel = context.WithCancel(ctx)
		go m.supervise(own, r)
	}
	return nil
}

// start starts one group after the other while ctx lasts.
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
		m.log.Warn("campaigning before the runnable is synced", zap.String("name", r.name), zap.NamedError("err", whyNotSynced(r.runnable)))
	}
	m.startGroup(ctx, election)
}

// release starts the runnables that wait for this replica to lead.
func (m *Manager) release(ctx context.Context) {
	if m.startGroup(ctx, Elected) {
		close(m.elected)
		m.log.Info("leading")
	}
}

// startGroup starts the runnables of a group, and lets later ones start when they are added. It reports whether it did;
// it does not if the manager is ending.
func (m *Manager) startGroup(ctx context.Context, g Group) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || m.life != runstate.Running || m.started[g] {
		return false
	}
	m.started[g] = true
	for _, r := range m.members {
		if r.group == g && r.equipped && !r.over {
			m.launch(r)
		}
	}
	return true
}

// awaitReady waits until every runnable of a group is ready, including those that are added meanwhile, or until ctx
// ends. It returns the runnables that were not ready in time.
func (m *Manager) awaitReady(ctx context.Context, g Group) (late []*RunnableRegistration) {
	patience := ctx
	if m.o.SyncTimeout > 0 {
		var stop context.CancelFunc
		patience, stop = context.WithTimeout(ctx, m.o.SyncTimeout)
		defer stop()
	}
	for ctx.Err() == nil {
		over := patience.Err() != nil
		late = m.unready(g) // read again when the time is up, because the others may be ready by now
		if len(late) == 0 {
			return nil
		}
		if over && ctx.Err() == nil { // otherwise ctx has ended, not the timeout
			return late
		}
		select {
		case <-late[0].ready:
		case <-late[0].done: // removed or ended; if it failed, ctx has ended
		case <-patience.Done():
		}
	}
	return nil
}

// unready returns the runnables of a group that the manager waits for.
func (m *Manager) unready(g Group) []*RunnableRegistration {
	return m.membersWhere(func(r *RunnableRegistration) bool {
		return r.group == g && r.ready != nil && !runstate.IsClosed(r.ready)
	})
}

// failSync makes Run fail with an error for each runnable whose time is up.
func (m *Manager) failSync(late []*RunnableRegistration) {
	var reasons []error
	for _, r := range late {
		reasons = append(reasons, &SyncError{Name: r.name, Timeout: m.o.SyncTimeout, Err: whyNotSynced(r.runnable)})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail(errors.Join(reasons...))
}

// elect is the Run of the group election.
func (m *Manager) elect(ctx context.Context) error {
	return m.o.Elector.Run(ctx, func(leading context.Context) error {
		m.release(leading)
		<-leading.Done() // ends after the workers, unless Run leaves them behind; until then the lease can be lost
		m.stepDown(context.Cause(leading))
		// The Elector releases the lease when this returns, which is after the last worker has ended, even after the
		// grace period.
		m.awaitEnd(nil, WarmUp, Elected)
		return nil
	})
}

// stepDown records that this replica no longer leads. If the manager is not ending the election, Run fails and waits
// for no runnable: another replica may lead by now, so a runnable that ignores its context must end with the process.
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

// end stops all runnables, group by group, and waits for them within the grace period.
func (m *Manager) end() error {
	grace, cancel := m.engage()
	defer cancel()
	if !m.leads() {
		m.tell(election) // this replica need not win the election any more
	}
	for _, groups := range endings {
		m.bound(groups...)
		m.tell(groups...)
		if !m.awaitEnd(grace.Done(), groups...) {
			return m.giveUp(grace)
		}
	}
	return m.conclude()
}

// engage stops new runnables from starting. It returns a context that ends after the grace period, or when the lease is
// lost.
func (m *Manager) engage() (context.Context, context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life = runstate.Ending
	period := m.o.GracePeriod
	if m.lost != nil {
		period = DoNotWait
	}
	m.log.Info("ending", zap.Duration("grace", period), zap.NamedError("err", errors.Join(m.failures...)))
	grace, cancel := context.WithCancel(context.Background())
	m.hurry = cancel
	switch {
	case period == DoNotWait:
		cancel()
	case period > 0:
		grace, cancel = context.WithTimeout(grace, period)
		m.endBy = new(time.Now().Add(period - min(period/10, time.Second))) // earlier, so that Run sees it return
	default:
		m.endBy = new(time.Time)
	}
	return grace, cancel
}

// bound tells the runnables of some groups that still have work to do when they have to end. It calls them without the
// lock. A Run that does not wait tells none.
func (m *Manager) bound(groups ...Group) {
	m.mu.Lock()
	endBy := m.endBy
	m.mu.Unlock()
	if endBy == nil {
		return
	}
	for _, r := range m.membersWhere(func(r *RunnableRegistration) bool { return slices.Contains(groups, r.group) }) {
		if b, ok := r.runnable.(DeadlineRunnable); ok {
			b.EndBy(*endBy)
		}
	}
}

// leads reports whether this replica has begun to lead.
func (m *Manager) leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started[Elected]
}

// tell stops all runnables of some groups.
func (m *Manager) tell(groups ...Group) {
	for _, r := range m.markTold(groups) {
		m.dispose(r)
	}
}

// markTold stops the runnables of some groups, and returns those that have not started.
func (m *Manager) markTold(groups []Group) (unstarted []*RunnableRegistration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range groups {
		m.told[g] = true
	}
	for _, r := range m.members {
		if slices.Contains(groups, r.group) && r.end() {
			unstarted = append(unstarted, r)
		}
	}
	return unstarted
}

// awaitEnd waits until no runnable of some groups is left. It reports whether this is so; otherwise the time is up.
func (m *Manager) awaitEnd(over <-chan struct{}, groups ...Group) bool {
	for {
		expired := runstate.IsClosed(over)
		left := m.membersWhere(func(r *RunnableRegistration) bool {
			return slices.Contains(groups, r.group) && (r.equipped || !r.over) // AddWith refuses the others
		})
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

// giveUp ends the waiting of Run and stops the remaining runnables. If the grace period is over, and the lease is not
// lost, it records the runnables that did not end.
func (m *Manager) giveUp(grace context.Context) error {
	if errors.Is(grace.Err(), context.DeadlineExceeded) {
		late := &GraceError{Period: m.o.GracePeriod}
		for _, r := range m.membersWhere(func(r *RunnableRegistration) bool { return m.told[r.group] }) {
			late.Names = append(late.Names, r.name)
		}
		m.mu.Lock()
		m.failures = append(m.failures, late)
		m.mu.Unlock()
	}
	m.tell(slices.Concat(endings...)...)
	return m.conclude()
}

// conclude returns the error of Run.
func (m *Manager) conclude() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life = runstate.Ended
	return errors.Join(m.failures...)
}

// membersWhere returns the members for which f returns true. It calls f with the lock held.
func (m *Manager) membersWhere(f func(*RunnableRegistration) bool) []*RunnableRegistration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var picked []*RunnableRegistration
	for _, r := range m.members {
		if f(r) {
			picked = append(picked, r)
		}
	}
	return picked
}
