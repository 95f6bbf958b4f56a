package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// Registration is a runnable that a manager runs.
// Nothing in controller-runtime corresponds to it: what is added there stays.
type Registration struct {
	manager  *Manager
	runnable Runnable
	name     string
	group    Group
	ready    <-chan struct{} // closed when those who start later may; nil is at once
	done     chan struct{}   // closed when Run has returned, or will never be called

	cancel  context.CancelFunc // nil unless it was started
	removed bool
	err     error // what its Run returned, unless it was told to end and did
}

func newRegistration(m *Manager, r Runnable, name string, g Group) *Registration {
	return &Registration{manager: m, runnable: r, name: name, group: g, ready: readiness(r, g), done: make(chan struct{})}
}

// Name is what the runnable is called in logs and errors.
func (r *Registration) Name() string { return r.name }

// Group is where it belongs.
func (r *Registration) Group() Group { return r.group }

// Remove ends the runnable. It does not wait, so that a runnable may remove itself; see Done. An error with which it ends
// after this is logged, and does not end the manager. Removing again does nothing.
func (r *Registration) Remove() {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	r.removed = true
	r.end()
}

// Done is closed when the runnable's Run has returned, or will never be called.
func (r *Registration) Done() <-chan struct{} { return r.done }

// Err is what the runnable's Run returned: nil before Done, and if it ended as it should.
func (r *Registration) Err() error {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	return r.err
}

// end tells a runnable to end. One that was not started never will be. The lock is held.
func (r *Registration) end() {
	if r.cancel != nil {
		r.cancel()
		return
	}
	if r.manager.forget(r) {
		close(r.done)
	}
}

// supervise runs a runnable to its end, however it comes to it.
func (m *Manager) supervise(ctx context.Context, r *Registration) {
	err := errGoexit
	defer func() { m.settle(r, err, ctx.Err() != nil) }()
	err = call(ctx, r)
}

// call turns a panic into an error.
func call(ctx context.Context, r *Registration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if r.group == WarmUp {
		return r.runnable.(held).RunHeld(ctx, r.manager.elected)
	}
	return r.runnable.Run(ctx)
}

// settle decides what the end of a runnable means. told says that it was told to end.
func (m *Manager) settle(r *Registration, err error, told bool) {
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
	var p *PanicError
	if errors.As(err, &p) {
		log.Error("runnable panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
	}
	switch {
	case err == nil:
		log.Info("runnable ended")
	case r.removed || m.life == ended:
		log.Error("runnable failed after it was told to end", zap.NamedError("err", err))
	case r.group == election && m.lost != nil: // which says it already
	default:
		m.fail(fmt.Errorf("manager: %s: %w", r.name, err))
	}
	r.err = err
	close(r.done)
}

// forget drops a runnable, and tells whether it was there. The lock is held.
func (m *Manager) forget(r *Registration) bool {
	for i, other := range m.members {
		if other == r {
			m.members = append(m.members[:i], m.members[i+1:]...)
			return true
		}
	}
	return false
}

// fail notes an error that Run will return, and makes it end. The lock is held.
func (m *Manager) fail(err error) {
	m.failures = append(m.failures, err)
	m.halt()
}
