package apiclient

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/internal/call"
)

const (
	silentBookmarks  = 4               // limit of silence, in longest times between two bookmarks
	shortestSilence  = 3 * time.Minute // the limit of silence is never shorter
	bookmarksToTrust = 2
)

// WatchTimeoutError is a watch that the client ended because the server sent bookmarks first and then nothing. Pings do
// not find this, because a proxy answers them for a server that has gone. It is a net.Error and matches api.ErrOverdue.
type WatchTimeoutError struct {
	Silence time.Duration // the time without data
}

// Error has the time without data.
func (e *WatchTimeoutError) Error() string {
	return fmt.Sprintf("apiclient: the watch got no data for %v, and no bookmark", e.Silence)
}

// Timeout is true. It is part of net.Error.
func (*WatchTimeoutError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*WatchTimeoutError) Temporary() bool { return true }

// Is matches api.ErrOverdue.
func (*WatchTimeoutError) Is(target error) bool { return target == api.ErrOverdue }

// watchdog ends the context of a watch if the server no longer sends bookmarks. They come regularly during a watch
// (KEP-956); kube-apiserver sends one each minute. The watchdog learns their interval. It does not enforce
// timeoutSeconds, because the reflector does that for every source.
//
// Rule: a Read records when it begins, and does not move the timer. The timer looks at this time when it fires, and
// then sets itself to the end of the Read's silence. Reason: a watch has a Read per event, and the limit is minutes.
// Price: the timer fires once per limit while events arrive. The end of a watch is still exact.
type watchdog struct {
	cancel context.CancelCauseFunc

	// Only the goroutine of the watch uses these.
	bookmarks    int
	lastBookmark time.Time
	longest      time.Duration // time between two bookmarks
	limited      bool          // the timer runs

	timer   *time.Timer
	epoch   time.Time
	silence atomic.Int64 // the limit, a time.Duration; it only grows
	reading atomic.Int64 // when the Read in progress began: nanoseconds after epoch, plus 1; 0 between two Reads
	stopped atomic.Bool
}

// newWatchdog returns a watchdog, or nil if the watch does not request bookmarks.
func newWatchdog(ctx context.Context, o metav1.ListOptions) (context.Context, *watchdog) {
	if !o.AllowWatchBookmarks {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d := &watchdog{cancel: cancel, epoch: time.Now()}
	d.timer = time.AfterFunc(math.MaxInt64, d.fire)
	d.timer.Stop()
	return ctx, d
}

// stop ends the context and the timer. fire looks at stopped after it set the timer, so one of the two stops it.
func (d *watchdog) stop() {
	if d == nil {
		return
	}
	d.cancel(nil)
	d.stopped.Store(true)
	d.timer.Stop()
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
	if d.bookmarks < bookmarksToTrust {
		return
	}
	silence := max(shortestSilence, silentBookmarks*d.longest)
	d.silence.Store(int64(silence))
	if !d.limited {
		d.limited = true
		d.timer.Reset(silence)
	}
}

// fire ends the watch if a Read is as old as the limit. Otherwise it sets the timer to the earliest time at which one
// can be.
func (d *watchdog) fire() {
	silence, reading := time.Duration(d.silence.Load()), d.reading.Load()
	left := silence
	if reading > 0 {
		left -= time.Since(d.epoch) - time.Duration(reading-1)
	}
	if left <= 0 {
		d.cancel(call.Cause{Err: &WatchTimeoutError{Silence: silence}})
		return
	}
	d.timer.Reset(left)
	if d.stopped.Load() {
		d.timer.Stop()
	}
}

// observed is a stream whose reads are announced, and limited by a watchdog. The time in which the caller handles an
// event does not count as silence.
type observed struct {
	io.Reader
	onWait func()    // may be nil
	dog    *watchdog // may be nil
}

func (o *observed) Read(p []byte) (int, error) {
	if o.onWait != nil {
		o.onWait()
	}
	if o.dog == nil || !o.dog.limited {
		return o.Reader.Read(p)
	}
	o.dog.reading.Store(int64(time.Since(o.dog.epoch)) + 1)
	n, err := o.Reader.Read(p)
	o.dog.reading.Store(0)
	return n, err
}
