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

// ErrLost is in the error of Run if a leader could not keep the lease. The error names the lease and the cause. The
// work has ended by then, but another replica may have led for a moment at the same time, if the work did not end with
// its context at once. A program should end with this error.
var ErrLost = errors.New("leaderelection: the lease is lost")

// errRunTwice is the error of a second call of Run.
var errRunTwice = errors.New("leaderelection: Run was called before; an Elector runs once")

var leases = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}

// Elector campaigns for a lease. It corresponds to LeaderElector of client-go.
type Elector struct {
	o       Options
	lock    lock
	log     *zap.Logger
	elected chan struct{} // closed when this replica leads for the first time
	tooLong string        // the holder whose long lease the log has; only Run uses it

	mu      sync.Mutex // guards the fields below
	ran     bool
	leader  string    // the holder at the last request
	leading bool      // the function that leads has not returned
	lost    bool      // the lease is lost; the function may still run
	renewed time.Time // start of the last successful renewal
	failed  error     // of the last attempt
}

// New returns an Elector for a lease on a server. It reports all invalid options in one error.
func New(c *apiclient.Client, o Options) (*Elector, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Elector{
		o:       o,
		lock:    lock{o: o, leases: apiclient.NewTyped[*coordinationv1.Lease](c, leases, o.Namespace)},
		elected: make(chan struct{}),
	}
	e.setLogger(cmp.Or(o.Logger, zap.NewNop()))
	return e, nil
}

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. It must be called before
// Run.
func (e *Elector) UseLogger(log *zap.Logger) {
	if e.o.Logger == nil {
		e.setLogger(log)
	}
}

func (e *Elector) setLogger(log *zap.Logger) {
	e.log = log.With(zap.String("lease", e.o.lease()), zap.String("identity", e.o.Identity))
}

// Lease returns the namespace and name of the lease.
func (e *Elector) Lease() api.Key { return api.Key{Namespace: e.o.Namespace, Name: e.o.Name} }

// Identity returns the name of this replica in the lease.
func (e *Elector) Identity() string { return e.o.Identity }

// Elected returns a channel that is closed when this replica leads for the first time.
func (e *Elector) Elected() <-chan struct{} { return e.elected }

// Leading reports whether this replica leads. It reads the clock: the result is false from RenewDeadline on, even if
// the process was stopped for a while and has not noticed yet. Call it before a write that must not come from two
// replicas and that the server would accept from both. It corresponds to LeaderElector.IsLeader of client-go, which
// does not read the clock.
func (e *Elector) Leading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading && !e.lost && time.Since(e.renewed) < e.o.RenewDeadline
}

// Leader returns the identity of the leader at the last request, or "" if the lease was free or there was no answer
// yet.
func (e *Elector) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// LastError returns the error of the last attempt to get or to renew the lease. It returns nil after an answer of the
// server, also if another replica holds the lease. The log has each error.
func (e *Elector) LastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// Check is a health check. It fails for a leader that has not renewed its lease for LeaseDuration and tolerance, which
// happens only if its work does not end. A replica that does not lead is healthy. It corresponds to LeaderElector.Check
// of client-go, and to its HealthzAdaptor.
func (e *Elector) Check(tolerance time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if since := time.Since(e.renewed); e.leading && since > e.o.LeaseDuration+tolerance {
		return fmt.Errorf("leaderelection: this replica leads, but last renewed the lease %v ago", since.Round(time.Second))
	}
	return nil
}

// Run waits until this replica may lead, calls lead, and returns after lead has returned. The result is nil or the
// error of lead, or an error that is ErrLost if the lease was lost. The context of lead ends with ctx and with the
// lease; its cause is ErrLost in the second case. If the work takes long to end and must notice a lost lease meanwhile,
// end ctx only after the work. If ctx ends before this replica leads, Run returns nil. Errors of the server are logged,
// and the request is repeated. Run can be called once.
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

// acquire tries to get the lease. It returns true when this replica has it, and false when ctx ends.
func (e *Elector) acquire(ctx context.Context) bool {
	e.log.Info("campaigning")
	for {
		if held, err := e.attempt(ctx); held {
			return true
		} else if err != nil && ctx.Err() == nil {
			e.log.Warn("cannot get the lease", zap.NamedError("err", err))
		}
		pause := e.o.RetryPeriod + rand.N(time.Duration(jitter*float64(e.o.RetryPeriod)))
		if left := e.lock.expiresIn(); left > 0 {
			pause = min(pause, left) // the next attempt is exactly when the lease expires
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// hold runs lead and renews the lease until lead has returned.
func (e *Elector) hold(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The lease outlives ctx: it is renewed until lead has returned.
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
		e.markLost()
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

// renew renews the lease until ctx ends, and then returns nil. If the lease is lost, it returns the cause.
func (e *Elector) renew(ctx context.Context) error {
	tick := time.NewTicker(e.o.RetryPeriod)
	defer tick.Stop()
	late := time.NewTimer(time.Until(e.deadline())) // the deadline may be between two ticks
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-late.C:
		case <-tick.C:
		}
		held, lost := e.renewOnce(ctx)
		if lost != nil || ctx.Err() != nil {
			return lost
		}
		if held {
			late.Reset(time.Until(e.deadline()))
		}
	}
}

// renewOnce tries to renew the lease, and reports whether that succeeded. If the lease is lost, it returns the cause.
func (e *Elector) renewOnce(ctx context.Context) (held bool, lost error) {
	if time.Until(e.deadline()) <= 0 {
		return false, fmt.Errorf("%w: %s could not be renewed for %v: %w", ErrLost, e.o.lease(), e.o.RenewDeadline,
			cmp.Or(e.LastError(), context.DeadlineExceeded))
	}
	held, err := e.attempt(ctx)
	switch {
	case held, ctx.Err() != nil:
	case err == nil:
		return false, fmt.Errorf("%w: %q holds %s", ErrLost, e.Leader(), e.o.lease())
	default:
		e.log.Warn("cannot renew the lease", zap.NamedError("err", err))
	}
	return held, nil
}

// deadline returns the time at which a leader that cannot renew must stop.
func (e *Elector) deadline() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.renewed.Add(e.o.RenewDeadline)
}

// attempt takes or renews the lease, and reports whether this replica holds it now.
func (e *Elector) attempt(ctx context.Context) (held bool, err error) {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, e.attemptDeadline(began))
	defer cancel()
	held, err = e.lock.take(ctx)
	e.mu.Lock()
	if e.failed = err; held {
		e.renewed = began
	}
	e.mu.Unlock()
	e.setLeader(e.lock.holder())
	e.complain()
	return held, err
}

// complain logs a lease that is valid for too long, once for each holder.
func (e *Elector) complain() {
	if e.lock.duration() <= maxLeaseDuration {
		e.tooLong = ""
	} else if holder := e.lock.holder(); e.tooLong != holder {
		e.tooLong = holder
		e.log.Error("the lease of the leader is valid for too long; it counts as one of an hour",
			zap.String("leader", holder), zap.Duration("duration", e.lock.duration()))
	}
}

// attemptDeadline returns when an attempt ends: after half of RenewDeadline, so that there is time for a second one,
// but not before one second. An attempt of a leader ends at its deadline at the latest.
func (e *Elector) attemptDeadline(began time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	took := max(time.Second, e.o.RenewDeadline/2)
	if e.leading {
		took = min(took, e.renewed.Add(e.o.RenewDeadline).Sub(began))
	}
	return began.Add(took)
}

// release gives the lease back. If that fails, the lease expires by itself.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.RenewDeadline)
	defer cancel()
	if err := e.lock.release(ctx); err != nil {
		e.log.Warn("cannot release the lease; it will expire", zap.Duration("after", e.o.LeaseDuration), zap.NamedError("err", err))
		return
	}
	e.log.Info("released the lease")
	e.setLeader("")
}

// markLost records that this replica does not hold the lease any more. The work may still run.
func (e *Elector) markLost() {
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
		e.log.Info("new leader", zap.String("leader", leader))
	}
	if e.o.OnLeader != nil {
		e.o.OnLeader(leader)
	}
}
