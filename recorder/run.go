package recorder

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A request that fails for a reason that may pass is made again after a second, then after twice as long each time, for two
// minutes. What waits in the queue meanwhile waits on.
const (
	retryBase  = time.Second
	retryMax   = 30 * time.Second
	retryUntil = 2 * time.Minute
)

// defaultFlush is how long Run writes Events after its context has ended, if neither FlushTimeout nor EndBy says.
const defaultFlush = 5 * time.Second

// Run writes the Events that it is told of until ctx ends, and then those that wait, within FlushTimeout or until the
// time of EndBy. It always returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	c := newCorrelator()
	tick := time.NewTicker(seriesPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case t := <-r.queue:
			r.take(ctx, c, t)
		case <-tick.C:
			r.refresh(ctx, c)
		case <-ctx.Done():
		}
	}
	ctx, cancel := r.flushing(context.WithoutCancel(ctx))
	defer cancel()
	r.flush(ctx, c)
	return nil
}

// flushing returns the context of a flush that begins now.
func (r *Recorder) flushing(ctx context.Context) (context.Context, context.CancelFunc) {
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

// take counts one event, and writes it if it is new or its series has not been written for long enough.
func (r *Recorder) take(ctx context.Context, c *correlator, t told) {
	r.log.Debug("event", t.fields()...)
	s := c.tell(t)
	if s == nil {
		r.counts.spam.Add(1)
		return
	}
	if s.count <= 2 || time.Since(s.wrote) >= seriesPause {
		r.write(ctx, s)
	}
}

// refresh writes the series that have grown since they were written last, a while ago.
func (r *Recorder) refresh(ctx context.Context, c *correlator) {
	for s := range c.series.all() {
		if s.count > s.written && time.Since(s.wrote) >= seriesPause {
			r.write(ctx, s)
		}
	}
}

// flush writes everything that was told and is not on the server.
func (r *Recorder) flush(ctx context.Context, c *correlator) {
	for waiting := true; waiting && ctx.Err() == nil; {
		select {
		case t := <-r.queue:
			r.take(ctx, c, t)
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
		r.log.Warn("events were not written in time", zap.Int("count", left))
	}
}

// write brings a series to the server, and gives it up, until it grows again, where that cannot be.
func (r *Recorder) write(ctx context.Context, s *series) {
	s.wrote = time.Now()
	err := r.retry(ctx, s)
	if ctx.Err() != nil && err != nil {
		return // the flush tries again
	}
	count := s.count
	if err != nil {
		r.failed(told{identity: s.identity, note: s.note}, err)
	} else {
		r.counts.written.Add(1)
	}
	s.written = count
}

// failed counts an event that is given up, and logs it unless another was logged a moment ago: where the API refuses one
// it mostly refuses all, and there is nothing new in that.
func (r *Recorder) failed(t told, err error) {
	r.counts.failed.Add(1)
	if others, due := r.complaints.next(time.Now()); due {
		r.log.Warn("event not written", append(t.fields(), zap.Int64("others", others), zap.NamedError("err", err))...)
	}
}

// complaintPause is between two complaints in the log.
const complaintPause = time.Minute

// complaints are what the log is told of failures. The zero value is ready.
type complaints struct {
	mu     sync.Mutex // guards the fields below
	last   time.Time
	silent int64 // failures since, of which nothing was said
}

// next tells whether it is time for a complaint, and of how many failures there was none.
func (c *complaints) next(now time.Time) (silent int64, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && now.Sub(c.last) < complaintPause {
		c.silent++
		return 0, false
	}
	silent, c.silent, c.last = c.silent, 0, now
	return silent, true
}

func (r *Recorder) retry(ctx context.Context, s *series) error {
	began := time.Now()
	for wait := retryBase; ; wait = min(2*wait, retryMax) {
		err := r.send(ctx, s)
		if err == nil || refused(err) || time.Since(began)+wait > retryUntil {
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

// send makes one request: an update for a series that the server has, a new Event for any other.
func (r *Recorder) send(ctx context.Context, s *series) error {
	if s.stored {
		err := r.sink.update(ctx, s)
		if !apierrors.IsNotFound(err) {
			return err
		}
		s.stored = false // servers forget Events after an hour
	}
	err := r.sink.create(ctx, s)
	if apierrors.IsAlreadyExists(err) { // an earlier try made it, whose answer was lost: nobody else has the name
		if err = nil; s.count > 1 { // of one there is no series, and a server refuses one
			err = r.sink.update(ctx, s)
		}
	}
	s.stored = err == nil
	return err
}

// refused tells whether a server said no, in a way that asking again will not change.
func refused(err error) bool {
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
