package reflector

import (
	"context"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// watch opens a stream and applies it to the store. If s asks for a streaming list, what comes before its end is staged.
func (r *Reflector[T]) watch(ctx context.Context, s state) (outcome, error) {
	f := &feed[T]{r: r, s: s, version: s.version, ordered: s.version != "" && s.version != "0"}
	if s.do == stream {
		f.staged, f.version, f.ordered = newStaging[T](), "", false
		r.undecodable.beginList()
		var stop func()
		ctx, stop = f.limitInitialList(ctx)
		defer stop()
	}
	o := r.options(s)
	o.OnUndecodable = f.undecodable
	var err error
	for event, failure := range r.lw.Watch(ctx, o) {
		if err = failure; err != nil {
			break
		}
		if err = f.apply(event); err != nil {
			break
		}
	}
	if cause := context.Cause(ctx); cause != nil && f.staged != nil {
		err = cause
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

func (f *feed[T]) outcome() outcome {
	if f.staged != nil {
		return outcome{}
	}
	return outcome{synced: true, version: f.version, events: f.events}
}

// limitInitialList ends ctx when a streaming list goes without an event for too long, or has sent what is not an initial
// object any more and still does not end.
func (f *feed[T]) limitInitialList(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.idle = time.AfterFunc(streamIdle, func() { cancel(errStalled) })
	f.overdue = time.AfterFunc(streamOverdue, func() { cancel(errStalled) })
	f.overdue.Stop()
	return ctx, func() {
		f.idle.Stop()
		f.overdue.Stop()
		cancel(nil)
	}
}

func (f *feed[T]) apply(e api.Event[T]) error {
	if f.staged != nil {
		f.idle.Reset(streamIdle)
	}
	if e.Type != apiwatch.Added && !f.ordered {
		f.ordered = true
		if f.staged != nil {
			f.overdue.Reset(streamOverdue)
		}
	}
	if e.Type == apiwatch.Bookmark {
		return f.bookmark(e)
	}
	f.count()
	key := api.KeyOf(e.Object)
	use, err := f.judge(e.Type, key, e.ResourceVersion)
	if err != nil || !use {
		return err
	}
	f.advance(e.ResourceVersion)
	if e.Type == apiwatch.Deleted {
		f.remove(key, e.Object)
		return nil
	}
	return f.put(e.Type, e.Object)
}

// bookmark advances the version, and ends a streaming list.
func (f *feed[T]) bookmark(e api.Event[T]) error {
	f.r.status.bookmark()
	if f.staged == nil {
		f.events++
		if older(e.ResourceVersion, f.version) {
			return errBackwards
		}
		f.advance(e.ResourceVersion)
		f.r.store.Bookmark(e.ResourceVersion)
		return nil
	}
	f.advance(e.ResourceVersion)
	if !e.InitialEventsEnd {
		return nil
	}
	version, err := f.r.commit(f.s, f.staged.objects, e.ResourceVersion)
	if err != nil {
		return err
	}
	f.version = version
	f.staged = nil
	f.idle.Stop()
	f.overdue.Stop()
	return nil
}

func (f *feed[T]) count() {
	f.r.status.event()
	if f.staged == nil {
		f.events++
	}
}

// judge decides whether an event says something new of its key. One that is older than what is known, or as old and no
// deletion, was sent twice or late, and is dropped. One that is older than the stream itself and speaks of an object
// that is not known may be the ghost of a deleted one: the stream cannot be trusted any more.
func (f *feed[T]) judge(kind apiwatch.EventType, key api.Key, version string) (use bool, err error) {
	known, exists := f.known(key)
	if exists {
		order, ok := api.CompareVersions(version, known.GetResourceVersion())
		stale := ok && known.GetResourceVersion() != "" &&
			(order < 0 || order == 0 && kind != apiwatch.Deleted && !f.r.o.NoReuse)
		if stale {
			f.r.status.stale()
		}
		return !stale, nil
	}
	if f.ordered && kind != apiwatch.Deleted && older(version, f.version) {
		return false, errBackwards
	}
	return true, nil
}

func (f *feed[T]) known(key api.Key) (T, bool) {
	if f.staged != nil {
		return f.staged.get(key)
	}
	return f.r.store.Get(key)
}

// advance notes the version that the stream has reached; it never falls.
func (f *feed[T]) advance(version string) {
	if f.ordered && version != "" && !older(version, f.version) {
		f.version = version
		f.r.status.reached(version)
	}
}

func (f *feed[T]) remove(key api.Key, last T) {
	f.r.undecodable.resolved(key)
	if f.staged != nil {
		f.staged.remove(key)
		return
	}
	f.r.store.Delete(last, f.version)
}

func (f *feed[T]) put(kind apiwatch.EventType, object T) error {
	if f.staged != nil {
		f.r.undecodable.resolved(api.KeyOf(object))
		return f.r.stage(object, f.staged.put)
	}
	object, bad := f.r.transform(object, kind)
	if bad != nil {
		return f.keep(bad)
	}
	f.r.undecodable.resolved(api.KeyOf(object))
	f.r.store.Put(object, f.version)
	return nil
}

// undecodable receives the event of an object that is not a T, in its place among the others.
func (f *feed[T]) undecodable(e *api.UndecodableError) error {
	if f.staged != nil {
		f.idle.Reset(streamIdle)
	}
	if e.Type != apiwatch.Added {
		f.ordered = true
	}
	f.count()
	use, err := f.judge(e.Type, e.Key, e.ResourceVersion)
	if err != nil || !use {
		return err
	}
	f.advance(e.ResourceVersion)
	return f.keep(e)
}

// keep leaves the last good state of an undecodable object where it is; only a deletion is certain all the same.
func (f *feed[T]) keep(e *api.UndecodableError) error {
	if f.staged != nil && e.Type != apiwatch.Deleted {
		return f.r.stageUndecodable(e, f.staged.put)
	}
	if err := f.r.noteUndecodable(e); err != nil {
		return err
	}
	switch {
	case e.Type != apiwatch.Deleted:
		f.r.store.Bookmark(f.version)
	case f.staged != nil:
		f.staged.remove(e.Key)
	default:
		f.r.store.DeleteKey(e.Key, f.version)
	}
	return nil
}
