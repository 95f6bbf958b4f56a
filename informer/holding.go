package informer

import (
	"context"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// Holding decides how an informer holds its objects in memory. Package packed has implementations. A Holding must be
// comparable: two users share an informer only if their Holdings are equal.
type Holding[T api.Object] interface {
	// Hold returns the result of HoldAs for the objects of lw. New calls it.
	Hold(lw api.ListerWatcher[T], o Options[T]) Held[T]
}

// Held is what HoldAs returns.
type Held[T api.Object] struct{ pipeline shown[T] }

// Form says how objects of type T are held as H. All functions must be safe for concurrent use.
type Form[T, H api.Object] struct {
	// Source lists and watches the objects of the ListerWatcher as H.
	Source api.ListerWatcher[H]
	// Unpack returns the object as a copy, which the caller owns.
	Unpack func(H) T
	// Share returns the object for callers that do not change it. It may return the same one several times.
	Share func(H) T
	// Identities returns a function for one handler. The function returns an object that has only the key, the UID and
	// the version. The next call but one may change this object and return it again.
	Identities func() func(H) T
	// Pack returns the H of an object that Options.Transform has changed.
	Pack func(T) (H, error)
}

// HoldAs returns a pipeline whose queue and cache have objects of type H, for an informer of T.
func HoldAs[T, H api.Object](o Options[T], f Form[T, H]) Held[T] {
	p := newPipeline(f.options(o), streamOf(f.Source))
	return Held[T]{view[T, H]{p, f, cache.View(p.indexer, f.Unpack, f.Share)}}
}

// shown is a pipeline whose objects are shown as T: a pipeline of T, or a view of a pipeline of another type.
type shown[T api.Object] interface {
	cache() *cache.Indexer[T]
	ends() events
	run(ctx context.Context) error
	source() Feed
	state() pipelineState
	useLogger(log *zap.Logger)
	waitFor(ctx context.Context, version string) error
	waitUntil(ctx context.Context, reached func() bool) error
	subscribe(f func(api.Change[T]), o HandlerOptions) (Registration, error)
	trace(t Trace) (stop func())
}

// options returns the options of the pipeline. It has no mutation detector, because no user code gets the objects in
// its cache.
func (f Form[T, H]) options(o Options[T]) Options[H] {
	held := Options[H]{
		Selector: o.Selector, Gate: o.Gate, Check: o.Check, Logger: o.Logger,
		Handling: o.Handling, Memory: o.Memory, Hooks: o.Hooks, Tuning: o.Tuning,
	}
	held.NoSharedParts = true // readers own what they get
	if o.Transform != nil {
		held.Transform = func(h H) (H, error) {
			object, err := o.Transform(f.Unpack(h))
			if err != nil {
				return h, err
			}
			return f.Pack(object)
		}
	}
	return held
}

// view is a pipeline that holds objects of type T as H. Only its cache, its handlers and its traces convert objects.
type view[T, H api.Object] struct {
	*pipeline[H]
	form    Form[T, H]
	objects *cache.Indexer[T]
}

func (v view[T, H]) cache() *cache.Indexer[T] { return v.objects }

// subscribe registers a handler whose objects are unpacked when it is called.
func (v view[T, H]) subscribe(handle func(api.Change[T]), o HandlerOptions) (Registration, error) {
	show := v.form.Share
	if o.IdentityOnly {
		show = v.form.Identities()
	}
	return v.pipeline.subscribe(func(c api.Change[H]) { handle(showChange(c, show)) }, o)
}

func (v view[T, H]) trace(t Trace) (stop func()) {
	if change := t.Change; change != nil {
		t.Change = func(c TracedChange) {
			c.Object = v.form.Share(c.Object.(H))
			if c.Type == api.Updated {
				c.Old = v.form.Share(c.Old.(H))
			}
			change(c)
		}
	}
	return v.pipeline.trace(t)
}

// showChange returns a change with other objects.
func showChange[T, H api.Object](c api.Change[H], show func(H) T) api.Change[T] {
	shown := api.Change[T]{
		Type: c.Type, FinalStateUnknown: c.FinalStateUnknown, InitialList: c.InitialList, Resync: c.Resync, At: c.At,
		Object: show(c.Object),
	}
	switch {
	case c.Type != api.Updated:
	case c.Resync:
		shown.Old = shown.Object
	default:
		shown.Old = show(c.Old)
	}
	return shown
}
