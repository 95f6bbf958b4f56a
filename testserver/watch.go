package testserver

import (
	"context"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher serves one watch. It is a cursor in the history of its collection, moved by the goroutine of its request, so
// that watches cost no goroutine and no queue of their own.
type watcher struct {
	*call
	sink      sink
	selection selection
	shape     shape
	bookmarks bool

	initial  []*record // of the initial list, still to be sent
	endMark  bool      // the initial list ends with a bookmark
	cursor   *change   // the last change that was handed out
	from     uint64    // changes up to here are not sent: the client asked to start later
	version  uint64    // up to where the client knows everything
	epoch    int
	deadline <-chan time.Time
	nextMark *time.Timer // nil without bookmarks
	lastMark *time.Timer // shortly before the deadline

	short ending // how the deadline ends the watch
	due   due    // what has come due and waits until all changes are sent

	held   []heldFrame
	buffer []byte
	open   *openWatch
}

// watch answers a watch; errors that are known only after the request was read are events of the stream, as
// kube-apiserver has it, because by then the answer has begun.
func (x *call) watch() error {
	o, err := parseListOptions(x.request.Query)
	if err != nil {
		return err
	}
	streaming := !x.options.NoStreamingLists && !x.faults.refusesStreaming(x, o)
	o = withDefaults(o, streaming)
	if err := checkWatchOptions(o, streaming); err != nil {
		return err
	}
	if x.request.Name != "" {
		o.FieldSelector = "metadata.name=" + x.request.Name
	}
	sel, err := newSelection(x.def, x.request.Namespace, o.LabelSelector, o.FieldSelector)
	if err != nil {
		return err
	}
	version, err := parseVersion(o.ResourceVersion, false)
	if err != nil {
		return err
	}
	w := &watcher{call: x, selection: sel, shape: x.shape(), bookmarks: o.AllowWatchBookmarks}
	failure := w.position(x.http.Context(), o, version)
	if failure != nil && x.options.ExpiredStatus {
		return failure
	}
	w.open = x.watches.add(x.request) // before the client can know that the watch is open
	defer x.watches.remove(w.open)
	if w.sink, err = x.openSink(); err != nil {
		return err
	}
	if w.sink == nil {
		return nil // the handshake failed and has been answered
	}
	defer w.sink.release()
	if failure != nil {
		status := statusOf(failure)
		w.sendStatus(&status)
		w.sink.end()
		return nil
	}
	w.run(o)
	return nil
}

// position finds where the watch starts: with the present state, or after a version.
func (w *watcher) position(ctx context.Context, o metav1.ListOptions, version uint64) error {
	// A watch that does not say where to start begins with a list, streamed or not.
	legacy := o.SendInitialEvents == nil && version == 0
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if !legacy && !streamed && version > 0 {
		return w.resume(version)
	}
	v, err := w.reach(ctx, version)
	if err != nil {
		return err
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	cursor, ok := w.c.after(v.version)
	if !ok {
		w.faults.sawExpired(v.version)
		return expiredWatch(v.version, w.c.base.version)
	}
	w.cursor, w.version, w.from, w.epoch = cursor, v.version, v.version, w.c.epoch
	w.faults.sawPast(v.version)
	if legacy || streamed {
		w.initial = slices.Collect(w.selection.scan(v.root, ""))
		w.endMark = w.bookmarks && streamed
	}
	return nil
}

// resume positions the watch after a version that the client knows. One from the future is no error: nothing is sent
// until that version has passed.
func (w *watcher) resume(version uint64) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	cursor, ok := w.c.after(version)
	if !ok {
		w.faults.sawExpired(version)
		return expiredWatch(version, w.c.base.version)
	}
	w.cursor, w.version, w.from, w.epoch = cursor, version, version, w.c.epoch
	return nil
}

func expiredWatch(version, oldest uint64) error {
	return expired("too old resource version: " + strconv.FormatUint(version, 10) + " (" +
		strconv.FormatUint(oldest, 10) + ")")
}

// run sends the initial list and then every change, until the watch times out, is cut, or its client goes.
func (w *watcher) run(o metav1.ListOptions) {
	timeout := w.options.WatchTimeout
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if e, i := requestFault[ShortWatch](w.faults, w.request); i != nil && e.For < timeout {
		timeout = e.For
		w.short = ending{injection: i, abrupt: e.Abrupt}
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	w.deadline = end.C
	defer w.startMarks(timeout)()
	w.sink.flush()
	if !w.sendInitial() {
		return
	}
	for w.step() {
	}
}

// startMarks arms the timers of bookmarks: one each interval, and one two seconds before the end, so that the client
// resumes from as late a version as possible.
func (w *watcher) startMarks(timeout time.Duration) (stop func()) {
	const early = 2 * time.Second
	if !w.bookmarks || w.options.BookmarkInterval < 0 {
		return func() {}
	}
	w.nextMark = time.NewTimer(w.options.BookmarkInterval)
	w.lastMark = time.NewTimer(timeout - early)
	if timeout <= early {
		w.lastMark.Stop()
	}
	return func() {
		w.nextMark.Stop()
		w.lastMark.Stop()
	}
}

func (w *watcher) sendInitial() bool {
	for _, r := range w.initial {
		if !w.sendObject(watch.Added, r) {
			return false
		}
	}
	w.initial = nil
	if w.endMark && !w.sendBookmark(true) {
		return false
	}
	w.sink.flush()
	w.sink.listed()
	return true
}

// next is what has happened since the last step.
type next struct {
	change  *change
	version uint64 // of the server, when there is no change
	wake    <-chan struct{}
	ended   bool // the resource is gone, or the client has fallen too far behind
	cut     bool // the server was restored
}

// poll takes the next change, or says what to wait for.
func (w *watcher) poll(limit uint64) next {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.epoch != w.c.epoch {
		return next{cut: true}
	}
	if w.c.retired || w.lagging() {
		return next{ended: true}
	}
	for ch := w.cursor.next; ch != nil && ch.version <= limit; ch = ch.next {
		w.cursor = ch
		if !ch.empty() && ch.version > w.from {
			return next{change: ch}
		}
	}
	return next{version: min(w.store.version, limit), wake: w.c.wake.wait()}
}

// lagging tells that the client has not read for so long that too much has piled up.
func (w *watcher) lagging() bool {
	limit := w.options.WatchBacklog
	return limit > 0 && w.c.tail.number-w.cursor.number > uint64(limit)
}

// due are the things that a watch does once it has nothing to send. They are noted when they happen and looked at in a
// fixed order, because a select among several that are ready picks any: what a watch sends must not depend on that.
type due struct{ bookmark, deadline bool }

// step sends one change, or does what is due, or flushes and waits; it returns false once the watch has ended.
func (w *watcher) step() bool {
	select {
	case <-w.open.ended:
		w.finish(w.open.ending)
		return false
	case <-w.sink.gone():
		return false
	default:
	}
	faultsChanged := w.faults.changes() // before looking, so that nothing is missed
	w.collect()
	n := w.poll(w.faults.horizon(w.call))
	switch {
	case n.cut:
		w.finish(ending{abrupt: true})
		return false
	case n.ended:
		w.sink.end()
		return false
	case n.change != nil:
		w.version = n.change.version
		return w.sendChange(n.change)
	case !w.releaseHeld(false):
		return false
	case w.due.deadline:
		w.finish(w.short)
		return false
	case w.due.bookmark:
		w.due.bookmark = false
		w.version = n.version
		return w.sendBookmark(false)
	}
	w.sink.flush()
	w.wait(n.wake, faultsChanged)
	return true
}

// wait blocks until there may be something to do.
func (w *watcher) wait(wake, faultsChanged <-chan struct{}) {
	select {
	case <-wake:
	case <-faultsChanged:
	case <-w.mark(w.nextMark):
		w.markDue()
	case <-w.mark(w.lastMark):
		w.due.bookmark = true
	case <-w.deadline:
		w.due.deadline = true
	case <-w.open.ended:
	case <-w.sink.gone():
	}
}

// collect notes what else has come due at the same time.
func (w *watcher) collect() {
	select {
	case <-w.deadline:
		w.due.deadline = true
	default:
	}
	select {
	case <-w.mark(w.nextMark):
		w.markDue()
	default:
	}
	select {
	case <-w.mark(w.lastMark):
		w.due.bookmark = true
	default:
	}
}

func (w *watcher) markDue() {
	w.nextMark.Reset(w.options.BookmarkInterval)
	w.due.bookmark = true
}

func (w *watcher) mark(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// sendChange sends what a change means to this watch: an object that starts or stops being selected comes and goes.
func (w *watcher) sendChange(ch *change) bool {
	var before, after bool
	if ch.before != nil {
		before = w.selection.matches(ch.before)
	}
	if ch.after != nil {
		after = w.selection.matches(ch.after)
	}
	switch {
	case before && after:
		return w.sendObject(watch.Modified, ch.after)
	case after:
		return w.sendObject(watch.Added, ch.after)
	case before && ch.gone != nil:
		return w.sendObject(watch.Deleted, ch.gone)
	case before:
		return w.sendObject(watch.Deleted, ch.before.at(ch.version))
	}
	return true
}

// sendObject sends one event through the faults; false means that the watch has ended.
func (w *watcher) sendObject(kind watch.EventType, r *record) bool {
	w.buffer = append(append(append(w.buffer[:0], `{"type":"`...), kind...), `","object":`...)
	w.buffer = append(w.shape.appendObject(w.buffer, r), "}\n"...)
	return w.dispatch(frame{kind: FrameType(kind), key: r.key, body: w.buffer})
}

func (w *watcher) sendBookmark(end bool) bool {
	kind := FrameBookmark
	out := append(w.buffer[:0], `{"type":"BOOKMARK","object":`...)
	out = w.shape.appendKind(out)
	out = append(out, `,"metadata":{"resourceVersion":"`...)
	out = append(strconv.AppendUint(out, w.version, 10), '"')
	if end {
		kind = FrameInitialEventsEnd
		out = append(out, `,"annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}`...)
	}
	w.buffer = append(out, "}}}\n"...)
	return w.dispatch(frame{kind: kind, body: w.buffer})
}

// sendStatus sends an ERROR event.
func (w *watcher) sendStatus(status *metav1.Status) {
	out := append(w.buffer[:0], `{"type":"ERROR","object":`...)
	w.buffer = append(append(out, encodeStatus(*status)...), "}\n"...)
	if w.sink.send(w.buffer) == nil {
		w.sink.flush()
	}
}

// finish ends the watch the way a fault wants it.
func (w *watcher) finish(e ending) {
	if e.status != nil {
		w.sendStatus(e.status)
	}
	e.injection.see()
	if e.abrupt {
		w.sink.abort()
		return
	}
	w.sink.end()
}
