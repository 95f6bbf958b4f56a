package reflector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// watch opens a watch or a WatchList and applies it to the store. The initial objects of a WatchList are staged until
// they are complete.
func (r *Reflector[T]) watch(ctx context.Context, s *state, res *result) error {
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	w, events := r.openWatch(ctx, s, dog)
	defer r.watching.Store(nil)
	err := w.consume(events)
	if w.waits {
		r.o.OnWait(false) // for the events after the last wait
	}
	if w.prober != nil {
		w.silence = w.prober.stop()
	}
	switch cause := context.Cause(ctx); {
	case cause == ErrMissed || cause == ErrUnconfirmed || cause == errRolledBack:
		err = cause
	case w.refused: // an event that contradicts the watch is a failure, also at the deadline
	case !stalled(ctx) && !errors.Is(err, api.ErrOverdue):
	case w.staged != nil:
		err = ErrStalled
	default:
		r.log.Info("the server did not end the watch in time", zap.String("rv", w.version))
		err = nil // no failure: the watch lasted as long as requested
	}
	w.result(res)
	return err
}

// openWatch returns a watch, and its events. The request follows with the first event.
func (r *Reflector[T]) openWatch(
	ctx context.Context, s *state, dog *watchdog,
) (*openWatch[T], iter.Seq2[api.Event[T], error]) {
	o := r.options(s)
	dog.after(time.Duration(*o.TimeoutSeconds)*time.Second + watchGrace)
	w := &openWatch[T]{r: r, s: s, dog: dog}
	w.begin = func() {
		r.watching.Store(dog)
		if hasOrder(w.version) {
			w.prober = r.newProber(ctx, s, dog.cancel)
		}
	}
	if s.do == watchList {
		w.beginInitialList(dog)
		if r.asksKnown(s) {
			o.Known = w.lookup
		}
	} else {
		w.version, w.ordered = s.version, s.resumable()
		w.begin()
	}
	o.OnUndecodable, o.OnOpen = w.undecodable, r.status.open
	if r.o.OnWait != nil {
		o.OnWait = func() { w.waits = true; r.o.OnWait(true) }
	}
	return w, r.lw.Watch(ctx, o)
}

// openWatch is a watch or a WatchList in progress.
type openWatch[T api.Object] struct {
	r *Reflector[T]
	s *state
	// dog ends the watch.
	dog *watchdog
	// begin starts what runs beside a watch, when its initial state is complete.
	begin func()
	// prober finds out whether the server still has the version. It is nil until the initial state is complete, and if
	// versions have no order.
	prober *prober[T]

	staged *staging[T] // the initial objects that have arrived; nil in a watch, and after the initial state is complete
	// version is the version reached. ordered means that versions only grow from here on. The initial objects of a
	// WatchList, and of a watch without a version, come in the order of their keys, so no watch may continue from their
	// versions.
	version string
	ordered bool
	events  int
	waits   bool          // Options.OnWait was called
	refused bool          // an event ended the watch
	silence time.Duration // at the end, since something confirmed the version

	idle, overdue *time.Timer // the deadlines of a WatchList
}

func (w *openWatch[T]) beginInitialList(dog *watchdog) {
	w.staged = stagingFor[T](w.r.store.KnownLen())
	w.r.undecodable.beginList()
	w.idle = dog.after(watchListIdle)
	w.overdue = dog.after(watchListOverdue)
	w.overdue.Stop()
}

func (w *openWatch[T]) consume(events iter.Seq2[api.Event[T], error]) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := w.apply(event); err != nil {
			w.refused = true
			return err
		}
	}
	return nil
}

func (w *openWatch[T]) result(res *result) {
	if w.staged != nil {
		return
	}
	*res = result{synced: true, version: w.version, events: w.events, silence: w.silence}
	if !w.ordered {
		res.version = w.s.version
	}
}

func (w *openWatch[T]) apply(e api.Event[T]) error {
	w.arrived(e.Type)
	switch e.Type {
	case apiwatch.Bookmark:
		return w.bookmark(e)
	case apiwatch.Added, apiwatch.Modified, apiwatch.Deleted:
	default:
		return fmt.Errorf("%w: %q", ErrUnknownEvent, e.Type)
	}
	key := api.KeyOf(e.Object)
	if reason := w.r.scope.check(key); reason != nil {
		w.progress()
		return w.r.skipMalformed(w.r.malformed(key, e.Object.GetUID(), e.ResourceVersion, e.Type, reason), w.staged)
	}
	use, err := w.checkVersion(e.Type, key, e.ResourceVersion)
	switch {
	case err != nil:
		return err
	case !use && !w.isUnversioned(key, e):
		w.drop(e.ResourceVersion)
		return nil
	case !use:
		w.r.ignoreVersions(key)
		w.noteVersion(e.ResourceVersion)
	}
	if e.Type == apiwatch.Deleted {
		return w.remove(key, e.Object)
	}
	return w.put(e.Type, e.Object)
}

// arrived notes that an event arrived. The first event that is not an addition means that all initial objects have
// arrived. An initial object is progress only if its key is new; put decides that.
func (w *openWatch[T]) arrived(kind apiwatch.EventType) {
	if kind == apiwatch.Added && !w.ordered {
		return
	}
	w.progress()
	if w.ordered {
		return
	}
	w.ordered = true
	if w.staged != nil {
		w.overdue.Reset(watchListOverdue)
	}
}

// progress postpones the deadline of a WatchList without new objects.
func (w *openWatch[T]) progress() {
	if w.staged != nil {
		w.idle.Reset(watchListIdle)
	}
}

// bookmark advances the version. The bookmark that marks the end of the initial state completes a WatchList.
func (w *openWatch[T]) bookmark(e api.Event[T]) error {
	if older(e.ResourceVersion, w.version) {
		return ErrBackwards // before it counts: the prober takes each bookmark that counts as a confirmation
	}
	w.r.status.bookmark()
	isNew := w.advance(e.ResourceVersion)
	switch {
	case w.staged == nil:
		if isNew {
			w.events++
		}
		w.r.store.Bookmark(w.version)
		w.r.status.caughtUp()
	case e.InitialEventsEnd:
		return w.endInitialList()
	}
	return nil
}

// endInitialList gives the initial state to the store. From here on the WatchList is a watch.
func (w *openWatch[T]) endInitialList() error {
	w.idle.Stop()
	w.overdue.Stop()
	if err := w.r.commit(w.s, w.staged, w.version); err != nil {
		return err
	}
	w.staged = nil
	w.s.confirm, w.s.watches.silence = confirmation{}, 0
	w.r.status.confirm(&w.s.confirm)
	w.begin()
	return nil
}

// checkVersion reports whether an event is newer than the last state of its object. If so, it notes the version; if
// not, the caller drops the event. An event is not new if it is older than the last state, or if it has the same
// version and is not a deletion: the server sent it twice or late. An event that is older than the version reached, of
// an unknown object, may be about an object that was deleted since. It contradicts the watch, and ErrBackwards ends the
// watch.
func (w *openWatch[T]) checkVersion(kind apiwatch.EventType, key api.Key, version string) (use bool, err error) {
	w.r.status.event()
	seen, exists := w.seen(key)
	switch {
	case w.stale(kind, version, seen), !exists && kind == apiwatch.Deleted && w.late(version):
		return false, nil
	case !exists && w.late(version):
		return false, ErrBackwards
	}
	w.noteVersion(version)
	return true, nil
}

// noteVersion notes the version of an event that is applied.
func (w *openWatch[T]) noteVersion(version string) {
	w.advance(version)
	if w.staged == nil {
		w.events++
	}
}

// drop counts an event that is not new. It still advances the version, because the store already has the state of the
// event, for example from a later page of the list. Otherwise WaitFor would block until the next event.
func (w *openWatch[T]) drop(version string) {
	w.r.status.stale()
	if w.advance(version) && w.staged == nil {
		w.events++
		w.r.store.Bookmark(w.version)
	}
}

// isUnversioned reports whether an event that is not new by its version differs in content from the known object.
func (w *openWatch[T]) isUnversioned(key api.Key, e api.Event[T]) bool {
	known, exists := w.known(key)
	return exists && known.GetResourceVersion() == e.ResourceVersion && w.r.unversioned(known, e.Object)
}

// late reports whether a version is older than the version reached.
func (w *openWatch[T]) late(version string) bool { return w.ordered && older(version, w.version) }

// stale reports whether an event of this version is not newer than the last state of its object.
func (w *openWatch[T]) stale(kind apiwatch.EventType, version, seen string) bool {
	if seen == "" {
		return false
	}
	order, ok := api.CompareVersions(version, seen)
	return ok && (order < 0 || order == 0 && kind != apiwatch.Deleted && w.r.versions.dedup)
}

// seen returns the newest version of an object that has arrived so far, whether it could be decoded or not. If not, the
// known object is the last good state, which is older. Initial objects come once each, so seen does not look for them;
// the staged objects get an index only when a change follows.
func (w *openWatch[T]) seen(key api.Key) (version string, exists bool) {
	if w.staged != nil && !w.ordered {
		return "", false
	}
	if bad, ok := w.r.undecodable.version(key); ok {
		return bad, true
	}
	if known, ok := w.known(key); ok {
		return known.GetResourceVersion(), true
	}
	return "", false
}

// lookup returns a known object to the decoder of a WatchList, for an initial object of the same version. Later events
// are always decoded: an event of a known version is rare, and its content shows whether the source changes versions.
func (w *openWatch[T]) lookup(namespace, name []byte) (T, bool) {
	if w.ordered {
		var none T
		return none, false
	}
	return w.r.store.Lookup(namespace, name)
}

// known returns the last state of an object: the staged one in a WatchList, or else the stored one.
func (w *openWatch[T]) known(key api.Key) (T, bool) {
	if w.staged == nil {
		return w.r.store.Get(key)
	}
	return w.staged.get(key)
}

// advance notes the version reached and reports whether it is new. The version never goes back. The initial objects of
// a WatchList do not advance it, because the bookmark at their end does. A watch without a version has no such
// bookmark, and its initial objects look like additions, so they advance the version. The price: the version may be
// ahead of the cache until the last of them has arrived.
func (w *openWatch[T]) advance(version string) bool {
	if w.staged != nil && !w.ordered || version == "" || version == w.version || older(version, w.version) {
		return false
	}
	w.version = version
	w.r.status.reached(version)
	return true
}

// put stores or stages an object.
func (w *openWatch[T]) put(kind apiwatch.EventType, object T) error {
	w.r.undecodable.resolved(api.KeyOf(object))
	if w.staged != nil {
		before := len(w.staged.objects)
		err := w.r.stage(object, w.s, w.staged)
		if len(w.staged.objects) > before {
			w.progress()
		}
		return err
	}
	object, bad := w.r.transform(object, kind)
	if bad != nil {
		return w.keepLastGood(bad)
	}
	w.r.store.Put(object, w.version)
	return nil
}

// remove deletes an object. Its last state is transformed, because handlers got the earlier states transformed.
func (w *openWatch[T]) remove(key api.Key, last T) error {
	w.r.undecodable.resolved(key)
	if w.staged != nil {
		w.staged.remove(key)
		return nil
	}
	switch known, exists := w.r.store.Get(key); {
	case !exists:
	case w.r.versions.dedup && api.SameVersion(known, last):
		last = known
	default:
		transformed, bad := w.r.transform(last, apiwatch.Deleted)
		if bad != nil {
			return w.keepLastGood(bad)
		}
		last = transformed
	}
	w.r.store.Delete(last, w.version)
	return nil
}

// undecodable handles an event whose object cannot be decoded. The decoder calls it in the order of the events.
func (w *openWatch[T]) undecodable(e *api.UndecodableError) error {
	w.arrived(e.Type)
	w.progress()
	if reason := w.r.scope.check(e.Key); reason != nil {
		return w.r.skipMalformed(w.r.malformed(e.Key, e.UID, e.ResourceVersion, e.Type, reason), w.staged)
	}
	use, err := w.checkVersion(e.Type, e.Key, e.ResourceVersion)
	switch {
	case err != nil:
		return err
	case !use:
		w.drop(e.ResourceVersion)
		return nil
	}
	return w.keepLastGood(e)
}

// keepLastGood keeps the last good state of an undecodable object. A deletion, or another UID, ends the object anyway.
func (w *openWatch[T]) keepLastGood(e *api.UndecodableError) error {
	if w.staged != nil && e.Type != apiwatch.Deleted {
		return w.r.stageUndecodable(e, w.staged)
	}
	if err := w.r.noteUndecodable(e); err != nil {
		return err
	}
	if w.staged != nil {
		w.staged.remove(e.Key)
		return nil
	}
	known, exists := w.r.store.Get(e.Key)
	if exists && (e.Type == apiwatch.Deleted || isAnother(known, e.UID)) {
		w.r.store.DeleteKey(e.Key, w.version)
		return nil
	}
	w.r.store.Bookmark(w.version)
	return nil
}
