package manager_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

// journal records events in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// inBubble runs a test in a bubble, with a journal.
func inBubble(t *testing.T, test func(t *testing.T, j *journal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &journal{}) })
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last take, when all goroutines are idle.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// part is a runnable that records its start and its end.
type part struct {
	name    string
	journal *journal
	linger  time.Duration // after it was stopped
	err     error         // the error of Run
	fail    chan struct{} // closing it ends Run; nil means never
}

func (p *part) Name() string { return p.name }

func (p *part) Run(ctx context.Context) error {
	p.journal.note("start %s", p.name)
	select {
	case <-ctx.Done():
		if p.linger > 0 {
			<-time.After(p.linger)
		}
	case <-p.fail:
	}
	p.journal.note("end %s", p.name)
	return p.err
}

// slow is a part that is ready when the test says so.
type slow struct {
	part
	synced chan struct{}
}

func (s *slow) Synced() <-chan struct{} { return s.synced }

// heldPart is a slow part with RunHeld, as a controller has.
type heldPart struct{ slow }

func (h *heldPart) RunHeld(ctx context.Context, release <-chan struct{}) error {
	h.journal.note("warm up %s", h.name)
	select {
	case <-release:
	case <-ctx.Done():
		h.journal.note("end cold %s", h.name)
		return nil
	}
	return h.Run(ctx)
}

// stubbornPart is a held part that also ends slowly before its release.
type stubbornPart struct{ slow }

func (p *stubbornPart) RunHeld(ctx context.Context, _ <-chan struct{}) error {
	p.journal.note("warm up %s", p.name)
	<-ctx.Done()
	<-time.After(10 * time.Second)
	p.journal.note("end %s", p.name)
	return nil
}

func (j *journal) newStubborn(name string) *stubbornPart { return &stubbornPart{*j.newSlow(name)} }

// newPart, newSlow and newHeld make parts of one journal.
func (j *journal) newPart(name string) *part { return &part{name: name, journal: j} }

func (j *journal) newSlow(name string) *slow {
	return &slow{part: part{name: name, journal: j}, synced: make(chan struct{})}
}

func (j *journal) newHeld(name string) *heldPart { return &heldPart{*j.newSlow(name)} }

// vote is an Elector that the test controls.
type vote struct {
	journal *journal
	win     chan struct{}
	lose    chan error
}

func (j *journal) newVote() *vote {
	return &vote{journal: j, win: make(chan struct{}), lose: make(chan error, 1)}
}

func (v *vote) Run(ctx context.Context, lead func(context.Context) error) error {
	v.journal.note("campaign")
	select {
	case <-v.win:
	case <-ctx.Done():
		v.journal.note("withdraw")
		return nil
	}
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := make(chan error, 1)
	go func() { over <- lead(leading) }()
	select {
	case err := <-v.lose:
		stop(err)
		<-over
		v.journal.note("lost")
		return err
	case err := <-over:
		v.journal.note("release")
		return err
	}
}

// bench is a manager that runs in the background of a bubble.
type bench struct {
	*manager.Manager
	cancel context.CancelFunc
	ended  chan error
}

func newManager(t *testing.T, o manager.Options) *manager.Manager {
	t.Helper()
	return must.Get(manager.New(o))(t)
}

func run(t *testing.T, m *manager.Manager) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{Manager: m, cancel: cancel, ended: make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.ended <- m.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over // a test that fails leaves no goroutine either
	})
	synctest.Wait()
	return b
}

// stop ends the manager. It returns how long that took, and the error of Run.
func (b *bench) stop() (time.Duration, error) {
	began := time.Now()
	b.cancel()
	err := <-b.ended
	return time.Since(began), err
}

func place(t *testing.T, m *manager.Manager, g manager.Group, r manager.Runnable) *manager.RunnableRegistration {
	t.Helper()
	return must.Get(m.AddWith(r, manager.Placement{Group: g}))(t)
}
