package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
)

// RunnableRegistration is a runnable of a manager. controller-runtime has nothing like it; a runnable that was added
// there cannot be removed.
type RunnableRegistration struct {
	manager  *Manager
	runnable Runnable
	name     string
	group    Group
	ready    <-chan struct{} // closed when later groups may start; nil means at once
	done     chan struct{}   // closed when Run has returned, or will never be called

	cancel     context.CancelFunc // nil before the start
	unregister func()             // ends the metrics; may be nil
	equipped   bool               // it has the logger and the metrics of the manager; before that it does not start
	over       bool               // it will never start
	removed    bool
	err        error // the error of Run, if the runnable failed
}

func newRegistration(m *Manager, r Runnable, name string, g Group) *RunnableRegistration {
	return &RunnableRegistration{manager: m, runnable: r, name: name, group: g, ready: readiness(r, g), done: make(chan struct{})}
}

// Name returns the name of the runnable in logs and errors.
func (r *RunnableRegistration) Name() string { return r.name }

// Group returns the group of the runnable.
func (r *RunnableRegistration) Group() Group { return r.group }

// Remove ends the runnable. It does not wait for the end, so a runnable may remove itself; see Done. A later error of
// the runnable is logged and does not end the manager. A second Remove does nothing.
func (r *RunnableRegistration) Remove() {
	if r.remove() {
		r.manager.dispose(r)
	}
}

// remove does what Remove does with the lock held. It returns the result of end.
func (r *RunnableRegistration) remove() bool {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	r.removed = true
	return r.end()
}

// Done returns a channel that is closed when the runnable's Run has returned, or will never be called.
func (r *RunnableRegistration) Done() <-chan struct{} { return r.done }

// Err returns the error of the runnable's Run. It is nil before Done is closed, and if the runnable ended normally.
func (r *RunnableRegistration) Err() error {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	return r.err
}

// end stops a runnable. A runnable that has not started will never start; then end returns true, and the caller
// disposes of it. The caller holds the lock.
func (r *RunnableRegistration) end() bool {
	if r.cancel != nil {
		r.cancel()
		return false
	}
	first := !r.over
	r.over = true
	return first && r.equipped // otherwise AddWith is still at work, and disposes of it
}

// dispose removes a runnable that has not started and never will.
func (m *Manager) dispose(r *RunnableRegistration) {
	r.endMetrics()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(r)
	close(r.done)
}

// endMetrics removes the metrics while the name of the runnable is still taken. The caller does not hold the lock,
// because this calls code of the user.
func (r *RunnableRegistration) endMetrics() {
	if r.unregister != nil {
		r.unregister()
	}
}

// supervise runs a runnable until it ends in any way.
func (m *Manager) supervise(ctx context.Context, r *RunnableRegistration) {
	err := errGoexit
	defer func() { m.settle(r, err, ctx.Err() != nil) }()
	err = call(ctx, r)
}

// call runs a runnable and turns a panic into an error.
func call(ctx context.Context, r *RunnableRegistration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = api.Recovered(p)
		}
	}()
	if r.group == WarmUp {
		return r.runnable.(WarmUpRunnable).RunHeld(ctx, r.manager.elected)
	}
	return r.runnable.Run(ctx)
}

// settle handles the end of a runnable. told is true if the manager had stopped it.
func (m *Manager) settle(r *RunnableRegistration, err error, told bool) {
	r.endMetrics()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case told && errors.Is(err, context.Canceled):
		err = nil
	case !told && err == nil && r.group.vital():
		err = ErrEnded
	}
	r.cancel()
	m.forget(r)
	log := m.log.With(zap.String("name", r.name), zap.Stringer("group", r.group))
	var p *api.PanicError
	if errors.As(err, &p) {
		log.Error("runnable panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
	}
	switch {
	case err == nil:
		log.Info("runnable ended")
	case r.removed || m.life == runstate.Ended:
		log.Error("runnable failed after it was stopped", zap.NamedError("err", err))
	case r.group == election && m.lost != nil: // m.lost contains the reason
	default:
		m.fail(fmt.Errorf("manager: %s: %w", r.name, err))
	}
	r.err = err
	close(r.done)
}

// forget removes a runnable from the members. The caller holds the lock.
func (m *Manager) forget(r *RunnableRegistration) {
	m.members = slices.DeleteFunc(m.members, func(other *RunnableRegistration) bool { return other == r })
}

// fail records an error that Run will return, and makes Run end. The caller holds the lock.
func (m *Manager) fail(err error) {
	m.failures = append(m.failures, err)
	m.halt()
}
