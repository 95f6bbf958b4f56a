package testserver

import (
	"context"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// watcher serves one watch. It is a cursor in the history of its collection. The goroutine of the request moves the
// cursor, so a watch needs no other goroutine and no queue.
type watcher struct {
	*call
	sink      wire.Sink
	selection store.Selection
	shape     wire.Shape
	bookmarks bool

	initial     []*store.Record // objects of the initial list that are not sent yet
	endBookmark bool            // a bookmark ends the initial list
	cursor      *store.Cursor   // the place in the history
	from        uint64          // changes up to this version are not sent, because the client asked for later ones
	version     uint64          // the client knows all changes up to this version
	schedule    schedule        // what the watch does when all changes are sent
	short       ending          // how the watch ends at the deadline

	delayed []delayedFrame
	buffer  []byte
	open    *openWatch
}

// watch answers a watch. Errors in the parameters are answers with a status. An expired or unreachable version is an
// ERROR event, because kube-apiserver has begun the answer by then.
func (x *call) watch() error {
	o, err := wire.ParseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	streaming := !x.options.NoWatchList
	if streaming && o.SendInitialEvents != nil {
		streaming = !disturb.Answer[faults.RefuseWatchList](x.plan, x.target())
	}
	o = wire.DefaultWatchOptions(o, streaming)
	if err := wire.CheckWatchOptions(o, streaming); err != nil {
		return err
	}
	if x.request.Name != "" {
		o.FieldSelector = "metadata.name=" + x.request.Name
	}
	sel, err := x.selection(o)
	if err != nil {
		return err
	}
	version, err := wire.ParseVersion(o.ResourceVersion, false)
	if err != nil {
		return err
	}
	if err := x.offer().CheckStream(x.media); err != nil {
		return err
	}
	w := &watcher{call: x, selection: sel, shape: x.shape(), bookmarks: o.AllowWatchBookmarks}
	failure := w.position(x.http.Context(), o, version)
	if failure != nil && x.options.ExpiredStatus {
		return failure
	}
	w.open = newOpenWatch(x.request, x.target())
	if !inside(x.http) {
		x.watches.add(w.open) // before the client can know that the watch is open
		defer x.watches.remove(w.open)
	}
	if w.sink = wire.NewSink(x.w, x.http, x.media.Type, x.options.CompressWatches); w.sink == nil {
		return nil // the handshake failed and was answered
	}
	defer w.sink.Release()
	if failure != nil {
		status := wire.StatusOf(failure)
		w.sendStatus(&status)
		w.sink.End()
		return nil
	}
	w.run(o)
	return nil
}

// position sets the start of the watch: the present state, or the changes after a version.
func (w *watcher) position(ctx context.Context, o metav1.ListOptions, version uint64) error {
	// A watch without a version begins with the present state, also without sendInitialEvents.
	legacy := o.SendInitialEvents == nil && version == 0
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if !legacy && !streamed && version > 0 {
		return w.resume(version)
	}
	v, err := w.waitFor(ctx, version)
	if err != nil {
		return err
	}
	if err := w.resume(v.Version); err != nil {
		return err
	}
	w.plan.CountPast(v.Version)
	if legacy || streamed {
		w.initial = slices.Collect(w.selection.Scan(v, ""))
		w.endBookmark = w.bookmarks && streamed
	}
	return nil
}

// resume sets the start after a version that the client knows. A version that the server has not reached is no error:
// the watch sends the changes after it.
func (w *watcher) resume(version uint64) error {
	cursor, oldest := w.store.Cursor(w.c, version)
	if cursor == nil {
		w.plan.CountExpired(version)
		return expiredWatch(version, oldest)
	}
	w.cursor, w.version, w.from = cursor, version, version
	return nil
}

func expiredWatch(version, oldest uint64) error {
	return wire.Expired("too old resource version: " + strconv.FormatUint(version, 10) + " (" +
		strconv.FormatUint(oldest, 10) + ")")
}

// run sends the initial list and then every change, until the watch times out, a fault ends it, or the client
// disconnects.
func (w *watcher) run(o metav1.ListOptions) {
	timeout := w.options.WatchTimeout
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds != 0 { // a negative one ends the watch at once
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if e, i := disturb.Request[faults.ShortWatch](w.plan, w.target()); i != nil && e.For < timeout {
		timeout = e.For
		w.short = ending{injection: i, abrupt: e.Abrupt}
	}
	interval := w.options.BookmarkInterval
	if !w.bookmarks {
		interval = -1
	}
	w.schedule.start(timeout, interval)
	defer w.schedule.stop()
	w.sink.Flush()
	if !w.sendInitial() {
		return
	}
	for w.step() {
	}
}

func (w *watcher) sendInitial() bool {
	for _, r := range w.initial {
		if !w.sendObject(watch.Added, r) {
			return false
		}
	}
	w.initial = nil
	if w.endBookmark && !w.sendBookmark(true) {
		return false
	}
	w.sink.Flush()
	w.sink.Listed()
	return true
}

// step sends one change, or performs a due action, or flushes and waits. It returns false if the watch has ended.
func (w *watcher) step() bool {
	select {
	case <-w.open.ended:
		w.finish(w.open.ending)
		return false
	case <-w.sink.Disconnected():
		return false
	default:
	}
	faultsChanged := w.plan.Changed() // before the look at the faults, so that no change is missed
	n := w.store.Next(w.cursor, w.newestVisible(), w.options.WatchBacklog)
	switch {
	case n.Cut:
		w.finish(w.cut())
		return false
	case n.Ended:
		w.sink.End()
		return false
	case !n.None:
		w.version = n.Version
		return w.sendChange(n)
	case !w.sendDelayed(false):
		return false
	}
	switch deadline, bookmark := w.schedule.due(); {
	case deadline:
		w.finish(w.short)
		return false
	case bookmark:
		return w.bookmarkAt(n.Version)
	}
	w.sink.Flush()
	w.wait(n.Changed, faultsChanged)
	return true
}

// cut says how the watch ends when another state replaces the present one. A watch of a client is reset. The control
// plane gets a 410, so that its informers list at once: after a reset, they would wait, and watch from a version that
// the new state may not have reached.
func (w *watcher) cut() ending {
	if !inside(w.http) {
		return ending{abrupt: true}
	}
	status := wire.StatusOf(wire.Expired("another state has replaced the one of this watch"))
	return ending{status: &status}
}

// bookmarkAt sends a bookmark with a version, unless the watch began with that version or a later one. A watch from the
// server's own version gets its first bookmark after the next change. A watch from a future version gets nothing until
// the server passes that version. kube-apiserver does the same.
func (w *watcher) bookmarkAt(version uint64) bool {
	if version <= w.from {
		return true
	}
	w.version = version
	return w.sendBookmark(false)
}

// wait blocks until there may be something to do.
func (w *watcher) wait(changed, faultsChanged <-chan struct{}) {
	select {
	case <-changed:
	case <-faultsChanged:
	case <-w.schedule.timer.C:
	case <-w.open.ended:
	case <-w.sink.Disconnected():
	}
}

// sendChange sends the event of a change as this watch sees it. An object that begins to match the selectors is ADDED,
// and one that no longer matches is DELETED.
func (w *watcher) sendChange(ch store.Step) bool {
	before := ch.Before != nil && w.selection.Matches(ch.Before)
	after := ch.After != nil && w.selection.Matches(ch.After)
	switch {
	case before && after:
		return w.sendObject(watch.Modified, ch.After)
	case after:
		return w.sendObject(watch.Added, ch.After)
	case before && ch.Deleted != nil:
		return w.sendObject(watch.Deleted, ch.Deleted)
	case before:
		return w.sendObject(watch.Deleted, ch.Before.At(ch.Version))
	}
	return true
}

// sendObject sends one event after the faults. It returns false if the watch has ended.
func (w *watcher) sendObject(kind watch.EventType, r *store.Record) bool {
	if w.shape.As == wire.PartialList {
		w.finish(ending{}) // kube-apiserver accepts this kind for a watch, and then fails to convert the first object
		return false
	}
	w.buffer = w.shape.Event(w.buffer[:0], kind, r)
	w.shape.NoColumns = true
	return w.dispatch(frame{disturb.Frame{Kind: kind, Key: r.Key}, w.buffer})
}

func (w *watcher) sendBookmark(end bool) bool {
	kind := watch.Bookmark
	if end {
		kind = faults.InitialEventsEnd
	}
	w.buffer = w.shape.Bookmark(w.buffer[:0], w.version, end)
	w.shape.NoColumns = true
	return w.dispatch(frame{disturb.Frame{Kind: kind}, w.buffer})
}

// sendStatus sends an ERROR event.
func (w *watcher) sendStatus(status *metav1.Status) {
	w.buffer = append(w.buffer[:0], w.shape.ErrorEvent(*status)...)
	if w.sink.Send(w.buffer) == nil {
		w.sink.Flush()
	}
}

// finish ends the watch as e says.
func (w *watcher) finish(e ending) {
	if e.status != nil {
		w.sendStatus(e.status)
	}
	e.injection.CountSeen()
	if e.abrupt {
		w.sink.Abort()
		return
	}
	w.sink.End()
}
