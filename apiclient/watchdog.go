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
	watchGrace       = 30 * time.Second // how much longer than it was asked to a server may keep a watch open
	silentBookmarks  = 4                // so many of the longest time between two bookmarks, in silence, are too much,
	shortestSilence  = 3 * time.Minute  // but no less than this
	bookmarksToTrust = 2
)

// WatchTimeoutError is a watch that the client ended because the server no longer does what it promised. Pings do not
// find that: a proxy answers them for a server that is gone. It is a net.Error, and matches api.ErrOverdue.
type WatchTimeoutError struct {
	// Lasted is how long the watch was open, and Asked how long it was to be; both are zero where it was silence that
	// ended it.
	Lasted, Asked time.Duration
	// Silence is for how long nothing came though there were bookmarks before, or zero.
	Silence time.Duration
}

// Error says which promise was not kept.
func (e *WatchTimeoutError) Error() string {
	if e.Silence > 0 {
		return fmt.Sprintf("apiclient: nothing came on the watch for %v, not even a bookmark", e.Silence)
	}
	return fmt.Sprintf("apiclient: the server kept the watch open for %v, though it was to end it after %v", e.Lasted, e.Asked)
}

// Timeout says that it is one, as net.Error asks.
func (*WatchTimeoutError) Timeout() bool { return true }

// Temporary says that trying again may help, as net.Error asks.
func (*WatchTimeoutError) Temporary() bool { return true }

// Is matches api.ErrOverdue.
func (*WatchTimeoutError) Is(target error) bool { return target == api.ErrOverdue }

// givenUp is why a context has ended, and nil before that: the context's own error, or the watchdog's.
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

// watchdog ends the context of a watch, by one timer. It knows two promises: timeoutSeconds, after which a server ends a
// watch by itself (kube-apiserver may be a little late), and bookmarks, which come at intervals as long as the watch
// lives (KEP-956; kube-apiserver's are a minute apart). How long silence may last is learned from those that came.
type watchdog struct {
	cancel context.CancelCauseFunc
	asked  time.Duration // timeoutSeconds; 0 for none

	// Of the goroutine of the watch alone.
	bookmarks    int
	lastBookmark time.Time
	longest      time.Duration // between two of them

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	began   time.Time
	silence time.Duration // that is too long; 0 while that is not known
	reading time.Time     // since when the watch waits for bytes; zero while it does not
}

// newWatchdog starts to watch a watch, and nothing where nothing was promised.
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

// restart counts from now. The server has just answered: it may have let the request wait.
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

// arm sets the timer to the next promise that may turn out not to be kept.
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
		d.timer = time.AfterFunc(next.Sub(now), d.bite)
	default:
		d.timer.Reset(next.Sub(now))
	}
}

// bite ends the watch if a promise was not kept. The timer may have been set before bytes came; the next Read sets it anew.
func (d *watchdog) bite() {
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

// waits notes that the watch begins to wait for bytes, or that they came. A caller who takes his time with an event is
// no silence of the server's.
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

// saw learns from the bookmarks of a watch how often they come. The one that ends an initial list is none of those.
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

// guarded is a stream that a watchdog sees being read.
type guarded struct {
	io.Reader
	dog *watchdog
}

func (g guarded) Read(p []byte) (int, error) {
	g.dog.waits(true)
	defer g.dog.waits(false)
	return g.Reader.Read(p)
}
