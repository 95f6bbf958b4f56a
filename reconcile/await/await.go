package await

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// Options configures a wait. The zero value waits for all objects of the ListerWatcher and reports nothing.
type Options struct {
	// Selector selects the objects. Object adds the name to its Fields.
	Selector api.Selector

	// OnError gets every error after which the wait continues: for example an unreachable server or a broken watch. It
	// runs on another goroutine than the condition, one call at a time.
	OnError func(error)
}

// Until blocks until met returns true for the selected objects, and returns them in that state. It calls met with each
// state of the informer's cache, beginning with the first list, on the caller's goroutine. An error of met ends the
// wait. If several states arrive at once, met gets only the last one; use Object if it must see every state.
//
// The error contains what and the selection. It is one of:
//   - *UnmetError, which wraps the error of ctx, if ctx ended first
//   - an error that makes waiting useless: the server forbids the list or rejects its options, it does not serve the
//     resource, its certificate is not accepted, or an object cannot be decoded into T
//   - the error of met
//
// It corresponds to watchtools.UntilWithSync of client-go.
func Until[T api.Object](ctx context.Context, lw api.ListerWatcher[T], what string, met func(*cache.Snapshot[T]) (bool, error), o Options) (*cache.Snapshot[T], error) {
	var at *cache.Snapshot[T]
	w := wait[T]{lw: lw, o: o, what: what, subject: lw.Collection().Resource.String(), check: func(_ bool, _ []api.Change[T], now *cache.Snapshot[T]) (bool, error) {
		at = now
		return met(now)
	}}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return at, nil
}

// wait is one running wait. check runs on the goroutine of run, and refused is set on the reflector's. Both goroutines
// have ended their calls when run returns.
type wait[T api.Object] struct {
	lw      api.ListerWatcher[T]
	o       Options
	what    string // "success"
	subject string // "pods default/web"
	// check gets the changes of a batch, those of one object in a row, and the cache after them.
	check func(initialList bool, changes []api.Change[T], now *cache.Snapshot[T]) (bool, error)
	state func() string // nil if the wait follows no single object

	changes []api.Change[T] // of the present batch
	listed  bool            // check has been called
	met     bool
	failed  error // error of check
	refused error // the error that makes waiting useless
	last    error // the last error of the server since the last complete list
}

// run blocks until the condition is met (nil), ctx ends, or waiting is useless.
func (w *wait[T]) run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var i *informer.Informer[T]
	i = informer.New(w.lw, informer.Options[T]{
		Selector: w.o.Selector,
		Hooks: reflector.Hooks{
			OnUndecodable: reflector.Fail,
			OnError: func(err error) {
				w.last = err
				if pointless(i.Status().Reflector.Phase, err) {
					w.refused = err
					stop()
				} else if w.o.OnError != nil {
					w.o.OnError(err)
				}
			},
		},
	})
	i.Trace(informer.Trace{
		MayBlock: true,
		Change: func(c informer.TracedChange) {
			w.changes = append(w.changes, api.Change[T]{Type: c.Type, Object: c.Object.(T)})
		},
		Batch: func(b informer.TracedBatch) {
			w.batch(b, i.Snapshot())
			if w.done() {
				stop()
			}
		},
	})
	ended := i.Run(running)
	switch {
	case w.failed != nil:
		return w.wrap(w.failed)
	case w.met:
		return nil
	case w.refused != nil:
		return w.wrap(w.refused)
	case ended != nil:
		return w.wrap(ended)
	default:
		return w.unmet(ctx.Err())
	}
}

// batch checks the condition after a batch.
func (w *wait[T]) batch(b informer.TracedBatch, now *cache.Snapshot[T]) {
	changes := w.changes
	w.changes = nil
	if w.done() || !w.listed && !b.InitialList {
		return
	}
	w.met, w.failed = w.check(b.InitialList, changes, now)
	w.listed = true
}

func (w *wait[T]) done() bool { return w.met || w.failed != nil }

func (w *wait[T]) wrap(err error) error {
	return fmt.Errorf("wait for %s of %s: %w", w.what, w.subject, err)
}

func (w *wait[T]) unmet(err error) error {
	u := &UnmetError{Resource: w.lw.Collection().Resource, What: w.what, Subject: w.subject, Listed: w.listed, Last: w.last, Err: err}
	if w.listed && w.state != nil {
		u.State = w.state()
	}
	return u
}

// pointless reports whether an error will not go away by itself. A rejected WatchList is not such an error, because a
// paged list follows. A rejected watch is not one either, because a list follows.
func pointless(phase reflector.Phase, err error) bool {
	var certificate *apiclient.CertificateError
	if errors.As(err, &certificate) {
		return true
	}
	return phase == reflector.Listing && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
		apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err))
}
