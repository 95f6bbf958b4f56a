package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// watch opens a stream and applies it to the store. If s asks for a streaming list, what comes before its end is staged.
func (r *Reflector[T]) watch(ctx context.Context, s state) (outcome, error) {
	o := r.options(s)
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	dog.after(time.Duration(*o.TimeoutSeconds)*time.Second + watchGrace)
	f := &feed[T]{r: r, s: s}
	if s.do == stream {
		f.beginInitialList(dog)
		if r.reuses(s) {
			o.Known = f.lookup
		}
	} else {
		f.version, f.ordered = s.version, s.resumable()
	}
	o.OnUndecodable, o.OnOpen = f.undecodable, r.status.open
	err := f.consume(r.lw.Watch(ctx, o))
	switch {
	case !stalled(ctx) && !errors.Is(err, api.ErrOverdue):
	case f.staged != nil:
		err = ErrStalled
	default:
		r.log.Info("watch given up that the server had forgotten", zap.String("rv", f.version))
		err = nil // which is no failure: it had its time
	}
	return f.outcome(), err
}

// feed is one stream being applied.
type feed[T api.Object] struct {
	r *Reflector[T]
	s state

	staged *staging[T] // the initial state as far as it has come; nil once it is complete, or was before
	// version is what the stream has reached; ordered says that from here on versions only grow. Initial objects, of a
	// streaming list and of a watch from no version, come in the order of their keys, so that nothing is resumed from
	// their versions.
	version string
	ordered bool
	events  int
	heard   bool // a bookmark or the initial state

	idle, overdue *time.Timer // the deadlines of a streaming list
}

func (f *feed[T]) beginInitialList(dog *watchdog) {
	f.staged = stagingFor[T](f.r.store.KnownLen())
	f.r.undecodable.beginList()
	f.idle = dog.after(streamIdle)
	f.overdue = dog.after(streamOverdue)
	f.overdue.Stop()
}

func (f *feed[T]) consume(events func(func(api.Event[T], error) bool)) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := f.apply(event); err != nil {
			return err
		}
	}
	return nil
}

func (f *feed[T]) outcome() outcome {
	if f.staged != nil {
		return outcome{}
	}
	o := outcome{synced: true, version: f.version, events: f.events, heard: f.heard}
	if !f.ordered {
		o.version = f.s.version
	}
	return o
}

func (f *feed[T]) apply(e api.Event[T]) error {
	f.arrived(e.Type)
	switch e.Type {
	case apiwatch.Bookmark:
		return f.bookmark(e)
	case apiwatch.Added, apiwatch.Modified, apiwatch.Deleted:
	default:
		return fmt.Errorf("%w: %q", ErrUnknownEvent, e.Type)
	}
	key := api.KeyOf(e.Object)
	if reason := f.r.scope.check(key); reason != nil {
		f.progress()
		return f.r.refuse(f.r.malformed(key, e.Object.GetUID(), e.ResourceVersion, e.Type, reason), f.staged)
	}
	use, err := f.judge(e.Type, key, e.ResourceVersion)
	switch {
	case err != nil:
		return err
	case !use && !f.isUnversioned(key, e):
		f.drop(e.ResourceVersion)
		return nil
	case !use:
		f.r.distrust(key)
		f.take(e.ResourceVersion)
	}
	if e.Type == apiwatch.Deleted {
		return f.remove(key, e.Object)
	}
	return f.put(e.Type, e.Object)
}

// arrived notes that an event came. One that is no addition says that all initial objects have come. An initial object is
// progress only if its key is new: put finds out.
func (f *feed[T]) arrived(kind apiwatch.EventType) {
	if kind == apiwatch.Added && !f.ordered {
		return
	}
	f.progress()
	if f.ordered {
		return
	}
	f.ordered = true
	if f.staged != nil {
		f.overdue.Reset(streamOverdue)
	}
}

// progress puts off the deadline of a streaming list that brings nothing new.
func (f *feed[T]) progress() {
	if f.staged != nil {
		f.idle.Reset(streamIdle)
	}
}

// bookmark advances the version, and ends a streaming list.
func (f *feed[T]) bookmark(e api.Event[T]) error {
	f.r.status.bookmark()
	if older(e.ResourceVersion, f.version) {
		return ErrBackwards
	}
	news := f.advance(e.ResourceVersion)
	switch {
	case f.staged == nil:
		if news {
			f.events++
		}
		f.heard = true
		f.r.store.Bookmark(f.version)
		f.r.status.caughtUp()
	case e.InitialEventsEnd:
		return f.endInitialList()
	}
	return nil
}

// endInitialList hands the store its new state. The stream goes on, and is a watch from here.
func (f *feed[T]) endInitialList() error {
	f.idle.Stop()
	f.overdue.Stop()
	if err := f.r.commit(f.s, f.staged, f.version); err != nil {
		return err
	}
	f.staged, f.heard = nil, true
	return nil
}

// judge decides whether an event says something new of its key, and if so notes the version reached; otherwise the caller
// drops it. One that is older
// than what was seen of the object, or as old and no deletion, was sent twice or late, and is dropped. One that is older
// than the stream itself and speaks of an object that was not seen may be the ghost of a deleted one: the stream cannot
// be trusted any more.
func (f *feed[T]) judge(kind apiwatch.EventType, key api.Key, version string) (use bool, err error) {
	f.r.status.event()
	seen, exists := f.seen(key)
	switch {
	case exists && f.stale(kind, version, seen), !exists && kind == apiwatch.Deleted && f.late(version):
		return false, nil
	case !exists && f.late(version):
		return false, ErrBackwards
	}
	f.take(version)
	return true, nil
}

// take notes the version of an event that is applied.
func (f *feed[T]) take(version string) {
	f.advance(version)
	if f.staged == nil {
		f.events++
	}
}

// drop counts an event that says nothing new. It still advances the version: the store has what the event says, for
// instance from a later page of the list, and without the version WaitFor would block until the next event.
func (f *feed[T]) drop(version string) {
	f.r.status.stale()
	if f.advance(version) && f.staged == nil {
		f.events++
		f.r.store.Bookmark(f.version)
	}
}

// isUnversioned reports whether an event that was to be dropped says something new about an object of a known version.
func (f *feed[T]) isUnversioned(key api.Key, e api.Event[T]) bool {
	if f.staged != nil || e.Type == apiwatch.Deleted {
		return false
	}
	known, exists := f.r.store.Get(key)
	return exists && known.GetResourceVersion() == e.ResourceVersion && f.r.unversioned(known, e.Object)
}

// late tells whether a version lies before what the stream has reached.
func (f *feed[T]) late(version string) bool { return f.ordered && older(version, f.version) }

func (f *feed[T]) stale(kind apiwatch.EventType, version, seen string) bool {
	if seen == "" {
		return false
	}
	order, ok := api.CompareVersions(version, seen)
	return ok && (order < 0 || order == 0 && kind != apiwatch.Deleted && f.r.trust.dedup)
}

// seen is the newest version of an object that the stream, or else what came before it, has brought, be it one that
// could not be decoded. Initial objects come once each and need not be looked for; the index of what is staged is made
// when the first change follows them.
func (f *feed[T]) seen(key api.Key) (version string, exists bool) {
	if f.staged != nil && !f.ordered {
		return "", false
	}
	if known, ok := f.known(key); ok {
		version, exists = known.GetResourceVersion(), true
	}
	if bad, ok := f.r.undecodable.version(key); ok && (!exists || older(version, bad)) {
		return bad, true
	}
	return version, exists
}

// lookup answers the decoder of a streaming list with what the store has. Events that follow the list are decoded whole:
// an event of a known version is rare, and its content tells whether the source can be trusted.
func (f *feed[T]) lookup(namespace, name []byte) (T, bool) {
	if f.staged == nil || !f.r.reuses(f.s) {
		var none T
		return none, false
	}
	return f.r.store.Lookup(namespace, name)
}

func (f *feed[T]) known(key api.Key) (T, bool) {
	if f.staged == nil {
		return f.r.store.Get(key)
	}
	return f.staged.get(key)
}

// advance notes the version that the stream has reached, and says whether that is new; it never falls. The initial
// objects of a streaming list do not advance it, because the bookmark at their end does. Those of a watch from no version
// have no such end and look like additions, so they advance it: the price is that the version may be ahead of the cache
// until the last of them has come.
func (f *feed[T]) advance(version string) bool {
	if f.staged != nil && !f.ordered || version == "" || version == f.version || older(version, f.version) {
		return false
	}
	f.version = version
	f.r.status.reached(version)
	return true
}

func (f *feed[T]) put(kind apiwatch.EventType, object T) error {
	f.r.undecodable.resolved(api.KeyOf(object))
	if f.staged != nil {
		before := len(f.staged.objects)
		err := f.r.stage(object, f.s, f.staged)
		if len(f.staged.objects) > before {
			f.progress()
		}
		return err
	}
	object, bad := f.r.transform(object, kind)
	if bad != nil {
		return f.keep(bad)
	}
	f.r.store.Put(object, f.version)
	return nil
}

// remove takes an object away. Handlers see its last state as they have seen the ones before: transformed.
func (f *feed[T]) remove(key api.Key, last T) error {
	f.r.undecodable.resolved(key)
	if f.staged != nil {
		f.staged.remove(key)
		return nil
	}
	switch known, exists := f.r.store.Get(key); {
	case !exists:
	case f.r.trust.dedup && api.SameVersion(known, last):
		last = known
	default:
		transformed, bad := f.r.transform(last, apiwatch.Deleted)
		if bad != nil {
			return f.keep(bad)
		}
		last = transformed
	}
	f.r.store.Delete(last, f.version)
	return nil
}

// undecodable receives the event of an object that is not a T, in its place among the others.
func (f *feed[T]) undecodable(e *api.UndecodableError) error {
	f.arrived(e.Type)
	f.progress()
	if reason := f.r.scope.check(e.Key); reason != nil {
		return f.r.refuse(f.r.malformed(e.Key, e.UID, e.ResourceVersion, e.Type, reason), f.staged)
	}
	use, err := f.judge(e.Type, e.Key, e.ResourceVersion)
	switch {
	case err != nil:
		return err
	case !use:
		f.drop(e.ResourceVersion)
		return nil
	}
	return f.keep(e)
}

// keep leaves the last good state of an undecodable object where it is. Only its end is certain all the same: by a
// deletion, or because another object has its name.
func (f *feed[T]) keep(e *api.UndecodableError) error {
	if f.staged != nil && e.Type != apiwatch.Deleted {
		return f.r.stageUndecodable(e, f.staged)
	}
	if err := f.r.noteUndecodable(e); err != nil {
		return err
	}
	if f.staged != nil {
		f.staged.remove(e.Key)
		return nil
	}
	known, exists := f.r.store.Get(e.Key)
	if exists && (e.Type == apiwatch.Deleted || isAnother(known, e.UID)) {
		f.r.store.DeleteKey(e.Key, f.version)
		return nil
	}
	f.r.store.Bookmark(f.version)
	return nil
}
