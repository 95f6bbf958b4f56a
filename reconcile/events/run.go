package events

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A request that may succeed later is repeated after a second, then after twice the last pause, for two minutes. The
// Events in the queue wait meanwhile.
const (
	retryBase  = time.Second
	retryMax   = 30 * time.Second
	retryUntil = 2 * time.Minute
)

// defaultFlush is how long Run writes Events after its context has ended, without FlushTimeout and EndBy.
const defaultFlush = 5 * time.Second

// Run writes Events until ctx ends. It then writes the waiting Events, within FlushTimeout or until the time of EndBy.
// It always returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	c := newCorrelator()
	tick := time.NewTicker(seriesPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case t := <-r.queue:
			r.process(ctx, c, t)
		case <-tick.C:
			r.refresh(ctx, c)
		case <-ctx.Done():
		}
	}
	ctx, cancel := r.flushContext(context.WithoutCancel(ctx))
	defer cancel()
	r.flush(ctx, c)
	return nil
}

// flushContext returns the context of a flush that begins now.
func (r *Recorder) flushContext(ctx context.Context) (context.Context, context.CancelFunc) {
	switch by := r.endBy.Load(); {
	case r.o.FlushTimeout != 0:
		return context.WithTimeout(ctx, r.o.FlushTimeout)
	case by == nil:
		return context.WithTimeout(ctx, defaultFlush)
	case by.IsZero():
		return context.WithCancel(ctx)
	default:
		return context.WithDeadline(ctx, *by)
	}
}

// process counts one event. It writes the event if it is new, or if the last write of its series was long enough ago.
func (r *Recorder) process(ctx context.Context, c *correlator, t queuedEvent) {
	r.log.Load().Debug("event", t.fields()...)
	s := c.add(t)
	if s == nil {
		r.counts.spam.Add(1)
		return
	}
	if s.count <= 2 || time.Since(s.wrote) >= seriesPause {
		r.write(ctx, s)
	}
}

// refresh writes the series that have grown since their last write, if that was long enough ago.
func (r *Recorder) refresh(ctx context.Context, c *correlator) {
	for s := range c.series.all() {
		if s.count > s.written && time.Since(s.wrote) >= seriesPause {
			r.write(ctx, s)
		}
	}
}

// flush writes every event that is not on the server.
func (r *Recorder) flush(ctx context.Context, c *correlator) {
	for waiting := true; waiting && ctx.Err() == nil; {
		select {
		case t := <-r.queue:
			r.process(ctx, c, t)
		default:
			waiting = false
		}
	}
	unwritten := 0
	for s := range c.series.all() {
		if s.count > s.written && ctx.Err() == nil {
			r.write(ctx, s)
		}
		if s.count > s.written {
			unwritten++
		}
	}
	r.counts.failed.Add(int64(unwritten))
	if left := len(r.queue) + unwritten; left > 0 {
		r.log.Load().Warn("events were not written in time", zap.Int("count", left))
	}
}

// write writes a series to the server. If that fails, the series is given up until it grows again.
func (r *Recorder) write(ctx context.Context, s *series) {
	s.wrote = time.Now()
	err := r.retry(ctx, s)
	if ctx.Err() != nil && err != nil {
		return // the flush tries again
	}
	count := s.count
	if err != nil {
		r.failed(queuedEvent{identity: s.identity, note: s.note}, err)
	} else {
		r.counts.written.Add(1)
	}
	s.written = count
}

// failed counts an event that is given up, and logs it unless another was logged within a minute. If the API rejects
// one event it usually rejects all, so further entries would add nothing.
func (r *Recorder) failed(t queuedEvent, err error) {
	r.counts.failed.Add(1)
	if others, due := r.failureLog.next(time.Now()); due {
		r.log.Load().Warn("event not written", append(t.fields(), zap.Int64("others", others), zap.NamedError("err", err))...)
	}
}

// failureLogPause is the time between two log entries about failures.
const failureLogPause = time.Minute

// failureLog limits the log entries about failures. The zero value is ready.
type failureLog struct {
	mu       sync.Mutex // guards the fields below
	last     time.Time
	unlogged int64 // number of failures since then
}

// next reports whether a log entry is due, and how many failures were not logged since the last one.
func (c *failureLog) next(now time.Time) (unlogged int64, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) < failureLogPause {
		c.unlogged++
		return 0, false
	}
	unlogged, c.unlogged, c.last = c.unlogged, 0, now
	return unlogged, true
}

func (r *Recorder) retry(ctx context.Context, s *series) error {
	began := time.Now()
	for wait := retryBase; ; wait = min(2*wait, retryMax) {
		err := r.send(ctx, s)
		if err == nil || isPermanent(err) || time.Since(began)+wait > retryUntil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// send sends one request: an update for a series that is on the server, a new Event otherwise.
func (r *Recorder) send(ctx context.Context, s *series) error {
	if s.stored {
		err := r.sink.update(ctx, s)
		if !apierrors.IsNotFound(err) {
			return err
		}
		s.stored = false // servers forget Events after an hour
	}
	err := r.sink.create(ctx, s)
	if apierrors.IsAlreadyExists(err) { // an earlier request created it, and the answer was lost; the name is random
		if err = nil; s.count > 1 { // a server rejects a series with one event
			err = r.sink.update(ctx, s)
		}
	}
	s.stored = err == nil
	return err
}

// isPermanent reports whether a server has rejected a request in a way that a repetition cannot change.
func isPermanent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
