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
	} else {
		f.version, f.ordered = s.version, s.resumable()
	}
	o.OnUndecodable = f.undecodable
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
	// streaming list and of a watch from no version, come in the order of their keys.
	version string
	ordered bool
	events  int

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
	return outcome{synced: true, version: f.version, events: f.events}
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
	use, err := f.judge(e.Type, key, e.ResourceVersion)
	if err != nil || !use {
		return err
	}
	if e.Type == apiwatch.Deleted {
		return f.remove(key, e.Object)
	}
	return f.put(e.Type, e.Object)
}

// arrived notes that something came. What is no initial object says that the initial objects are through.
func (f *feed[T]) arrived(kind apiwatch.EventType) {
	if f.staged != nil {
		f.idle.Reset(streamIdle)
	}
	if kind == apiwatch.Added || f.ordered {
		return
	}
	f.ordered = true
	if f.staged != nil {
		f.overdue.Reset(streamOverdue)
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
	if err := f.r.commit(f.s, f.staged.objects, f.version); err != nil {
		return err
	}
	f.staged = nil
	return nil
}

// judge decides whether an event says something new of its key, and if so notes the version reached. One that is older
// than what was seen of the object, or as old and no deletion, was sent twice or late, and is dropped. One that is older
// than the stream itself and speaks of an object that was not seen may be the ghost of a deleted one: the stream cannot
// be trusted any more.
func (f *feed[T]) judge(kind apiwatch.EventType, key api.Key, version string) (use bool, err error) {
	f.r.status.event()
	seen, exists := f.seen(key)
	switch {
	case exists && f.stale(kind, version, seen), !exists && kind == apiwatch.Deleted && f.late(version):
		f.r.status.stale()
		return false, nil
	case !exists && f.late(version):
		return false, ErrBackwards
	}
	f.advance(version)
	if f.staged == nil {
		f.events++
	}
	return true, nil
}

// late tells whether a version lies before what the stream has reached.
func (f *feed[T]) late(version string) bool { return f.ordered && older(version, f.version) }

func (f *feed[T]) stale(kind apiwatch.EventType, version, seen string) bool {
	if seen == "" {
		return false
	}
	order, ok := api.CompareVersions(version, seen)
	return ok && (order < 0 || order == 0 && kind != apiwatch.Deleted && !f.r.o.NoReuse)
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

func (f *feed[T]) known(key api.Key) (T, bool) {
	if f.staged == nil {
		return f.r.store.Get(key)
	}
	if f.staged.position == nil {
		f.staged.index()
	}
	return f.staged.get(key)
}

// advance notes the version that the stream has reached, and says whether that is new; it never falls.
func (f *feed[T]) advance(version string) bool {
	if !f.ordered || version == "" || version == f.version || older(version, f.version) {
		return false
	}
	f.version = version
	f.r.status.reached(version)
	return true
}

func (f *feed[T]) put(kind apiwatch.EventType, object T) error {
	f.r.undecodable.resolved(api.KeyOf(object))
	if f.staged != nil {
		return f.r.stage(object, f.s, f.staged)
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
	case f.r.reuses(f.s) && api.SameVersion(known, last):
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
	use, err := f.judge(e.Type, e.Key, e.ResourceVersion)
	if err != nil || !use {
		return err
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
