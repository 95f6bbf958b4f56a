package apiclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

const (
	watchGrace       = 30 * time.Second // a server may end a watch so much later than requested
	silentBookmarks  = 4                // limit of silence, in longest times between two bookmarks
	shortestSilence  = 3 * time.Minute  // the limit of silence is never shorter
	bookmarksToTrust = 2
)

// WatchTimeoutError is a watch that the client ended because the server broke a promise: it sent no bookmarks, or did
// not end the watch. Pings do not find this, because a proxy answers them for a server that has gone. It is a net.Error
// and matches api.ErrOverdue.
type WatchTimeoutError struct {
	// Lasted is the duration of the watch, and Asked the duration that the client requested. Both are zero if the
	// reason was silence.
	Lasted, Asked time.Duration
	// Silence is the time without data on a watch that had bookmarks before, or zero.
	Silence time.Duration
}

// Error names the promise that the server broke.
func (e *WatchTimeoutError) Error() string {
	if e.Silence > 0 {
		return fmt.Sprintf("apiclient: the watch got no data for %v, and no bookmark", e.Silence)
	}
	return fmt.Sprintf("apiclient: the server kept the watch open for %v instead of %v", e.Lasted, e.Asked)
}

// Timeout is true. It is part of net.Error.
func (*WatchTimeoutError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*WatchTimeoutError) Temporary() bool { return true }

// Is matches api.ErrOverdue.
func (*WatchTimeoutError) Is(target error) bool { return target == api.ErrOverdue }

// givenUp returns why a context has ended: the context's own error or the watchdog's. It returns nil before the end.
func givenUp(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	var timeout *WatchTimeoutError
	if errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return err
}

// watchdog ends the context of a watch if the server breaks one of two promises. It uses one timer. The first promise
// is timeoutSeconds, after which a server ends a watch; kube-apiserver may be a little late. The second are bookmarks,
// which come regularly during a watch (KEP-956); kube-apiserver sends one each minute. The watchdog learns their
// interval.
type watchdog struct {
	cancel context.CancelCauseFunc
	asked  time.Duration // timeoutSeconds; 0 means no limit

	// Only the goroutine of the watch uses these fields.
	bookmarks    int
	lastBookmark time.Time
	longest      time.Duration // time between two bookmarks

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	began   time.Time
	silence time.Duration // the limit; 0 if it is not known yet
	reading time.Time     // when the watch began to wait for bytes; zero if it does not wait
}

// newWatchdog starts a watchdog if the server makes a promise that it can check.
func newWatchdog(ctx context.Context, o metav1.ListOptions) (context.Context, *watchdog) {
	var asked time.Duration
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		asked = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if asked == 0 && !o.AllowWatchBookmarks {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &watchdog{cancel: cancel, asked: asked}
	d.restart()
	return ctx, d
}

// restart begins the duration of the watch again. The server has just answered; it may have delayed the request.
func (d *watchdog) restart() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began = time.Now()
	d.arm(d.began)
}

func (d *watchdog) stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.cancel(nil)
}

// arm sets the timer to the earliest time at which a promise can be broken.
func (d *watchdog) arm(now time.Time) {
	var next time.Time
	if d.asked > 0 {
		next = d.began.Add(d.asked + watchGrace)
	}
	if silent := d.reading.Add(d.silence); d.silence > 0 && !d.reading.IsZero() && (next.IsZero() || silent.Before(next)) {
		next = silent
	}
	switch {
	case next.IsZero():
	case d.timer == nil:
		d.timer = time.AfterFunc(next.Sub(now), d.expire)
	default:
		d.timer.Reset(next.Sub(now))
	}
}

// expire ends the watch if a promise is broken. Otherwise bytes arrived after the timer was set, and the next Read sets
// it again.
func (d *watchdog) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	lasted := now.Sub(d.began)
	switch {
	case d.asked > 0 && lasted >= d.asked+watchGrace:
		d.cancel(&WatchTimeoutError{Lasted: lasted, Asked: d.asked})
	case d.silence > 0 && !d.reading.IsZero() && now.Sub(d.reading) >= d.silence:
		d.cancel(&WatchTimeoutError{Silence: d.silence})
	}
}

// waits records that the watch begins to wait for bytes, or that they arrived. The time in which the caller handles an
// event does not count as silence.
func (d *watchdog) waits(waiting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.silence == 0:
	case !waiting:
		d.reading = time.Time{}
	default:
		d.reading = time.Now()
		d.arm(d.reading)
	}
}

// saw learns the interval of bookmarks. The bookmark that ends an initial list does not count.
func (d *watchdog) saw(kind watch.EventType, initialEventsEnd bool) {
	if d == nil || kind != watch.Bookmark || initialEventsEnd {
		return
	}
	now := time.Now()
	if d.bookmarks > 0 {
		d.longest = max(d.longest, now.Sub(d.lastBookmark))
	}
	d.bookmarks++
	d.lastBookmark = now
	if d.bookmarks >= bookmarksToTrust {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.silence = max(shortestSilence, silentBookmarks*d.longest)
	}
}

// guarded is a stream that reports its reads to a watchdog.
type guarded struct {
	io.Reader
	dog *watchdog
}

func (g guarded) Read(p []byte) (int, error) {
	g.dog.waits(true)
	defer g.dog.waits(false)
	return g.Reader.Read(p)
}
