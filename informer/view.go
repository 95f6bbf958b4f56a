package informer

import (
	"context"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// Holding decides how an informer holds its objects in memory. Package packed has implementations. A Holding must be
// comparable: two users share an informer only if their Holdings are equal.
type Holding[T api.Object] interface {
	// HoldObjects makes a new informer hold its objects as a Form says: it calls View. New calls HoldObjects.
	HoldObjects(i *Informer[T])
}

// Form says how objects of type T are held as H. All functions must be safe for concurrent use.
type Form[T, H api.Object] struct {
	// Source has the objects of the ListerWatcher as H.
	Source api.ListerWatcher[H]
	// Unpack returns the object as a copy, which the caller owns.
	Unpack func(H) T
	// Share returns the object for callers that do not change it. It may return the same one several times.
	Share func(H) T
	// Identities returns a function for one handler. The function returns an object that has only the key, the UID and
	// the version. It may use the object again in the next call but one.
	Identities func() func(H) T
	// Pack returns an object that Options.Transform has changed as H.
	Pack func(T) (H, error)
}

// held is the informer behind an informer of T. It has no type parameter, and its signatures name few types, because a
// program contains the types in the signatures of its interfaces.
type held interface {
	UseLogger(log *zap.Logger)
	heldRun(ctx context.Context) error // not Run, so that the linker does not keep the Run of all types for it
	WaitFor(ctx context.Context, version string) error
	Undecodable() []*api.UndecodableError
	ObserveBatches(f func(Stored)) (stop func())
	heldObserveChanges(wanted func(api.Key) bool, f func(ObservedChange)) (stop func())
	heldObserveDeliveries(wanted func(api.Key) bool, f func(Delivery)) (stop func())
	heldStatus() any // a Status
	// heldSubscribe is Subscribe. f is a func(api.Change[T]).
	heldSubscribe(f any, o HandlerOptions) (Registration, error)
}

// View makes a new informer show objects that another informer holds in another form. Only the new informer and its
// cache convert objects: for reads, for handlers, and for functions of the user.
func View[T, H api.Object](i *Informer[T], f Form[T, H]) {
	inner := New(f.Source, heldOptions(i, f))
	i.held = view[T, H]{inner, f}
	i.indexer = cache.View(inner.indexer, f.Unpack, f.Share)
	i.synced, i.stopped = inner.synced, inner.stopped
}

// heldOptions returns the options of the informer behind i. It has no mutation detector, because no user code gets the
// objects in its cache.
func heldOptions[T, H api.Object](i *Informer[T], f Form[T, H]) Options[H] {
	o := i.o
	held := Options[H]{
		Selector: o.Selector, KeepManagedFields: o.KeepManagedFields, NoSharedParts: true, // readers own what they get
		OnUndecodable: o.OnUndecodable, OnError: o.OnError, OnRequest: o.OnRequest, Gate: o.Gate,
		ResyncPeriod: o.ResyncPeriod, Check: o.Check, StuckAfter: o.StuckAfter, CrashOnPanic: o.CrashOnPanic, Logger: o.Logger, Tuning: o.Tuning,
	}
	if o.Transform != nil {
		held.Transform = func(h H) (H, error) {
			object, err := o.Transform(f.Unpack(h))
			if err != nil {
				return h, err
			}
			return f.Pack(object)
		}
	}
	if o.OnBatch != nil {
		held.OnBatch = func(b deltafifo.Batch[H], _ *cache.Snapshot[H]) { o.OnBatch(f.batch(b), i.Snapshot()) }
	}
	return held
}

// batch returns a batch for OnBatch.
func (f Form[T, H]) batch(b deltafifo.Batch[H]) deltafifo.Batch[T] {
	shown := deltafifo.Batch[T]{
		ResourceVersion: b.ResourceVersion, InitialList: b.InitialList, Resync: b.Resync, Since: b.Since,
	}
	for _, object := range b.Objects {
		changes := deltafifo.ObjectChanges[T]{Key: object.Key}
		for _, c := range object.Changes {
			changes.Changes = append(changes.Changes, showChange(c, f.Share))
		}
		shown.Objects = append(shown.Objects, changes)
	}
	return shown
}

// view is the informer behind an informer of T.
type view[T, H api.Object] struct {
	*Informer[H]
	form Form[T, H]
}

func (v view[T, H]) heldRun(ctx context.Context) error { return v.Run(ctx) }

func (v view[T, H]) heldStatus() any { return v.Status() }

// heldSubscribe registers a handler whose objects are unpacked when it is called.
func (v view[T, H]) heldSubscribe(f any, o HandlerOptions) (Registration, error) {
	handle, show := f.(func(api.Change[T])), v.form.Share
	if o.IdentityOnly {
		show = v.form.Identities()
	}
	return v.Subscribe(func(c api.Change[H]) { handle(showChange(c, show)) }, o)
}

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
