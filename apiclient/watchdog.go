package apiclient

import (
	"context"
	"fmt"
	"io"
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
// timeoutSeconds, because the reflector does that for every source. Only the goroutine of the watch uses it.
type watchdog struct {
	cancel context.CancelCauseFunc

	bookmarks    int
	lastBookmark time.Time
	longest      time.Duration // time between two bookmarks

	silence time.Duration // the limit; 0 if it is not known yet
	timer   *time.Timer   // runs during a Read; nil if there is no limit yet
}

// newWatchdog returns a watchdog, or nil if the watch does not request bookmarks.
func newWatchdog(ctx context.Context, o metav1.ListOptions) (context.Context, *watchdog) {
	if !o.AllowWatchBookmarks {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{cancel: cancel}
}

func (d *watchdog) stop() {
	if d != nil {
		d.cancel(nil)
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
	silence := max(shortestSilence, silentBookmarks*d.longest)
	if d.bookmarks < bookmarksToTrust || silence == d.silence {
		return
	}
	d.silence = silence
	d.timer = time.AfterFunc(silence, func() { d.cancel(call.Cause{Err: &WatchTimeoutError{Silence: silence}}) })
	d.timer.Stop()
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
	if o.dog != nil && o.dog.timer != nil {
		o.dog.timer.Reset(o.dog.silence)
		defer o.dog.timer.Stop()
	}
	return o.Reader.Read(p)
}
