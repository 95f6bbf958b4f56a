package leaderelection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// ErrLost says that a leader could not keep the lease; the error that Run returns names the lease, and why. What it led has
// ended; but another may have led for a moment beside it, if what it led did not end with its context at once. A program
// should end with it.
var ErrLost = errors.New("leaderelection: the lease is lost")

// errRunTwice is the answer to a second Run.
var errRunTwice = errors.New("leaderelection: Run was called before: make another Elector")

var leases = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}

// Elector campaigns for a lease. Make one with New, for one Run.
// It corresponds to LeaderElector of client-go.
type Elector struct {
	o       Options
	lock    lock
	log     *zap.Logger
	elected chan struct{} // closed when this replica leads for the first time

	mu      sync.Mutex // guards the fields below
	ran     bool
	leader  string    // as was seen last
	leading bool      // what leads has not returned
	lost    bool      // the lease, which may be before that
	renewed time.Time // when the renewal that succeeded last was begun
}

// New returns an Elector that asks a server for its lease. It validates the options, and reports all that is wrong with
// them.
func New(c *apiclient.Client, o Options) (*Elector, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Elector{
		o:       o,
		lock:    lock{o: o, leases: apiclient.NewTyped[*coordinationv1.Lease](c, leases, o.Namespace)},
		log:     o.Logger.With(zap.String("lease", o.lease()), zap.String("identity", o.Identity)),
		elected: make(chan struct{}),
	}, nil
}

// Identity is what this replica is called in the lease.
func (e *Elector) Identity() string { return e.o.Identity }

// Elected is closed when this replica leads for the first time.
func (e *Elector) Elected() <-chan struct{} { return e.elected }

// Leading tells whether this replica leads. It asks the clock, and so is false from RenewDeadline on even where nobody has
// had time to notice, as in a process that was stopped for a while and goes on now: ask it before a write that must not
// come from two replicas, and that the server would accept from both.
// It corresponds to LeaderElector.IsLeader of client-go, which does not ask the clock.
func (e *Elector) Leading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading && !e.lost && time.Since(e.renewed) < e.o.RenewDeadline
}

// Leader is who leads, as was seen last; "" where nobody does, or nobody is known.
func (e *Elector) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Check is a health check: it fails for a leader that did not renew its lease for LeaseDuration and tolerance more, which
// can only be one whose work does not end. Who does not lead is healthy.
// It corresponds to LeaderElector.Check of client-go, and to its HealthzAdaptor.
func (e *Elector) Check(tolerance time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if since := time.Since(e.renewed); e.leading && since > e.o.LeaseDuration+tolerance {
		return fmt.Errorf("leaderelection: this replica leads, and renewed the lease last %v ago", since.Round(time.Second))
	}
	return nil
}

// Run waits until this replica may lead, calls lead, and returns after lead has: nil or lead's error when lead ended by
// itself or because ctx did, an error that is ErrLost when the lease was lost. The context of lead ends with ctx and with the
// lease, with ErrLost as its cause in the latter case. Who takes long to end, and wants to know if the lease is lost
// meanwhile, ends ctx when the work is over, and not before. A Run whose ctx ends before it leads returns nil. Errors of
// the server are logged, and tried again. Run may be called once.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	e.mu.Lock()
	ran := e.ran
	e.ran = true
	e.mu.Unlock()
	if ran {
		return errRunTwice
	}
	if !e.acquire(ctx) {
		return nil
	}
	e.setLeading(true)
	defer e.setLeading(false)
	return e.hold(ctx, lead)
}

// acquire tries to get the lease until it has it, which it tells, or ctx ends.
func (e *Elector) acquire(ctx context.Context) bool {
	e.log.Info("campaigning")
	for {
		if held, err := e.try(ctx); held {
			return true
		} else if err != nil && ctx.Err() == nil {
			e.log.Warn("cannot get the lease", zap.NamedError("err", err))
		}
		pause := e.o.RetryPeriod + rand.N(time.Duration(jitter*float64(e.o.RetryPeriod)))
		if left := e.lock.runsOut(); left > 0 {
			pause = min(pause, left) // to be there when it does
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// hold runs lead and renews the lease until it has returned.
func (e *Elector) hold(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The lease outlives ctx: it is renewed until the last worker is gone.
	renewing, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	var err error
	var work sync.WaitGroup
	work.Go(func() {
		defer ended()
		err = lead(leading)
	})
	lost := e.renew(renewing)
	if lost != nil {
		e.log.Error("lost the lease", zap.NamedError("err", lost))
		e.lose()
		stop(lost)
	}
	work.Wait()
	switch {
	case lost != nil && (err == nil || errors.Is(err, context.Canceled)):
		return lost
	case lost != nil:
		return errors.Join(lost, err)
	case !e.o.KeepLease:
		e.release(ctx)
	}
	return err
}

// renew renews the lease until ctx ends, when it returns nil, or until the lease is lost, when it says why.
func (e *Elector) renew(ctx context.Context) error {
	tick := time.NewTicker(e.o.RetryPeriod)
	defer tick.Stop()
	late := time.NewTimer(time.Until(e.deadline())) // which does not wait for a tick
	defer late.Stop()
	var failed error
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-late.C:
		case <-tick.C:
		}
		if time.Until(e.deadline()) <= 0 {
			return fmt.Errorf("%w: %s could not be renewed for %v: %w", ErrLost, e.o.lease(), e.o.RenewDeadline,
				cmp.Or(failed, context.DeadlineExceeded))
		}
		held, err := e.try(ctx)
		switch {
		case held:
			failed = nil
			late.Reset(time.Until(e.deadline()))
		case ctx.Err() != nil:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %q holds %s", ErrLost, e.Leader(), e.o.lease())
		default:
			failed = err
			e.log.Warn("cannot renew the lease", zap.NamedError("err", err))
		}
	}
}

// deadline is when a leader has to give up that cannot renew.
func (e *Elector) deadline() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.renewed.Add(e.o.RenewDeadline)
}

// try takes the lease, or renews it, and tells whether this replica holds it now.
func (e *Elector) try(ctx context.Context) (held bool, err error) {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, e.limit(began))
	defer cancel()
	held, err = e.lock.take(ctx)
	if held {
		e.mu.Lock()
		e.renewed = began
		e.mu.Unlock()
	}
	e.setLeader(e.lock.holder())
	return held, err
}

// limit is when a try ends: after half of RenewDeadline, so that there is time for another, or a second where that is
// more. A leader's ends with its deadline.
func (e *Elector) limit(began time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	took := max(time.Second, e.o.RenewDeadline/2)
	if e.leading {
		took = min(took, e.renewed.Add(e.o.RenewDeadline).Sub(began))
	}
	return began.Add(took)
}

// release gives the lease back. Where that fails it runs out by itself.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.RenewDeadline)
	defer cancel()
	if err := e.lock.release(ctx); err != nil {
		e.log.Warn("cannot release the lease, which will run out", zap.Duration("after", e.o.LeaseDuration), zap.NamedError("err", err))
		return
	}
	e.log.Info("released the lease")
	e.setLeader("")
}

// lose notes that this replica holds the lease no more, while what it led has yet to end.
func (e *Elector) lose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = true
}

func (e *Elector) setLeading(leading bool) {
	e.mu.Lock()
	e.leading = leading
	e.mu.Unlock()
	if leading {
		e.log.Info("leading")
		close(e.elected)
	}
	if e.o.OnLeading != nil {
		e.o.OnLeading(leading)
	}
}

func (e *Elector) setLeader(leader string) {
	e.mu.Lock()
	before := e.leader
	e.leader = leader
	e.mu.Unlock()
	if before == leader {
		return
	}
	if leader == "" {
		e.log.Info("no leader")
	} else {
		e.log.Info("another leader", zap.String("leader", leader))
	}
	if e.o.OnLeader != nil {
		e.o.OnLeader(leader)
	}
}
