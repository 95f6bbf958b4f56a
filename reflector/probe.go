package reflector

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// A probe selects an object that does not exist. If an object has this name anyway, it costs its own bytes.
const (
	probeName      = "leat-probe"
	probeNamespace = "default"
)

// prober sends the probes beside a watch: from one to two seconds after the start of a watch from an unconfirmed
// version, and after each silence of maxSilence. Most watches that fail do so within a second, and most watches that
// work bring an event soon, so most of them need no probe; the random second spreads the probes of many clients.
//
// It has no goroutine while it waits, only a timer. While it runs, state.confirm belongs to it.
type prober[T api.Object] struct {
	r      *Reflector[T]
	s      *state
	cancel context.CancelFunc // of the probe
	end    func(error)        // ends the watch
	timer  *time.Timer
	turn   chan struct{} // has an element while look runs, and from stop on

	confirmed time.Time // when something last confirmed the version
	// version and bookmarks are those of the last look. If they have grown since, the version is confirmed.
	version   string
	bookmarks int
}

// newProber starts the prober of a watch.
func (r *Reflector[T]) newProber(ctx context.Context, s *state, end func(error)) *prober[T] {
	p := &prober[T]{r: r, s: s, end: end, turn: make(chan struct{}, 1), confirmed: time.Now().Add(-s.watches.silence)}
	ctx, p.cancel = context.WithCancel(ctx)
	p.version, p.bookmarks = r.status.signs()
	delay := max(r.limits.maxSilence-s.watches.silence, r.limits.probeDelay)
	if s.confirm.pending {
		delay = r.jitter(r.limits.probeDelay)
	}
	p.turn <- struct{}{}
	p.timer = time.AfterFunc(delay, func() { p.look(ctx) })
	<-p.turn
	return p
}

// stop ends the prober, and returns the time since something confirmed the version. It waits for the probe and its
// callbacks.
func (p *prober[T]) stop() (silence time.Duration) {
	p.cancel()
	p.turn <- struct{}{}
	p.timer.Stop()
	p.confirmedBySign(time.Now())
	return time.Since(p.confirmed)
}

// confirmedBySign reports whether an event or a bookmark that has arrived since the last call confirms the version.
func (p *prober[T]) confirmedBySign(now time.Time) bool {
	version, bookmarks := p.r.status.signs()
	isNew := version != p.version || bookmarks != p.bookmarks
	p.version, p.bookmarks = version, bookmarks
	p.s.confirm.down = p.s.confirm.down && !isNew // a sign is an answer
	p.s.confirm.pass(now)
	if !isNew || !p.s.confirm.refused && p.r.limits.tooLate(&p.s.confirm, 0) {
		return false
	}
	p.s.confirm, p.confirmed = confirmation{}, now
	return true
}

// look decides whether the version needs a probe, and sends it. The timer calls it.
func (p *prober[T]) look(ctx context.Context) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-p.turn }()
	l, now := p.r.limits, time.Now()
	if p.confirmedBySign(now) {
		p.r.status.confirm(&p.s.confirm)
		p.timer.Reset(l.maxSilence)
		return
	}
	p.s.confirm.doubt(now)
	p.r.status.confirm(&p.s.confirm)
	err := p.r.probe(ctx, p.version)
	if ctx.Err() != nil {
		return
	}
	res := &result{outcome: classify(err), at: time.Now(), retryAfter: min(retryAfter(err), p.r.o.MaxRetryAfter)}
	res.lasted = res.at.Sub(now)
	next, end, pause := l.afterProbe(p.s.confirm, res)
	p.r.probed(res, err, pause)
	if p.s.confirm = next; next.pending {
		pause = p.r.jitter(pause)
	} else {
		p.confirmed = res.at
	}
	p.r.status.confirm(&p.s.confirm)
	switch end {
	case rolledBack:
		p.end(errRolledBack)
	case unconfirmed:
		p.end(ErrUnconfirmed)
	default:
		p.timer.Reset(pause)
	}
}

// probed reports a probe that has ended. If it succeeded, the pause is the one before the next look.
func (r *Reflector[T]) probed(res *result, err error, pause time.Duration) {
	r.status.probed(err)
	if r.o.OnRequest != nil {
		r.o.OnRequest(newRequest(probe, *res, err, pause))
	}
	if err == nil || res.outcome == rolledBack { // the end of the watch reports it
		return
	}
	r.log.Info("a probe of the server's version failed", zap.NamedError("err", err), zap.Duration("after", pause))
	if r.o.OnError != nil {
		r.o.OnError(err)
	}
}

// probe requests the version of the server with a consistent list, and uses nothing else of the answer. It returns
// errRolledBack if the version is older than the one reached.
func (r *Reflector[T]) probe(ctx context.Context, reached string) error {
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	dog.after(probeTimeout)
	o := api.Options[T]{ListOptions: metav1.ListOptions{Limit: 1}}
	o.LabelSelector, o.FieldSelector = r.o.Selector.Labels, selectOneName(r.o.Selector.Fields, r.resource().Namespaced)
	o.OnUndecodable = func(*api.UndecodableError) error { return nil }
	o.Keep = func(_, _ []byte) bool { return false } // also if the source ignores the selector
	meta, err := r.lw.List(ctx, o, func(T) error { return nil })
	switch {
	case err != nil && stalled(ctx):
		return ErrStalled
	case err == nil && older(meta.ResourceVersion, reached):
		return errRolledBack
	}
	return err
}

// selectOneName adds terms to a field selector so that it selects one name. kube-apiserver then reads one key instead
// of the whole collection; without a namespace in the request it needs the namespace in the selector for that. The
// selector itself stays, because the server may not allow the client any other list.
func selectOneName(selector string, namespaced bool) string {
	if strings.Contains(selector, "metadata.name=") {
		return selector // it selects one name already, perhaps the only one that the server allows
	}
	terms := []string{selector, "metadata.name=" + probeName, "metadata.namespace=" + probeNamespace}
	if !namespaced {
		terms = terms[:2]
	}
	if selector == "" {
		terms = terms[1:]
	}
	return strings.Join(terms, ",")
}
