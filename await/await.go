package await

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// ErrNone is beneath the error of All where Options.FailIfNone is set and nothing is selected.
var ErrNone = errors.New("await: nothing is selected")

// Options of a wait. The zero value waits for all objects of the ListerWatcher, in silence.
type Options struct {
	// LabelSelector and FieldSelector say which objects are meant. Object adds the name to the FieldSelector.
	LabelSelector, FieldSelector string

	// FailIfNone makes All fail with ErrNone when nothing is selected as it begins. Without it All waits for the first
	// object.
	FailIfNone bool

	// OnWaiting is told what is being waited for, once the first list is complete and whenever that changes. It is called
	// on the goroutine of the wait, which stands still until it returns.
	OnWaiting func([]Waiting)

	// OnError is told of every error after which the wait goes on: a server that cannot be reached, a watch that broke
	// off. It is called on another goroutine than OnWaiting, one call at a time.
	OnError func(error)
}

// Waiting is an object that does not meet its condition yet.
type Waiting struct {
	Key    api.Key
	Exists bool
	State  string // in a few words, for people; empty if it does not exist
}

// String is "default/web (Ready=False)".
func (w Waiting) String() string {
	if !w.Exists {
		return api.FormatKey(w.Key) + " (which does not exist)"
	}
	return fmt.Sprintf("%s (%s)", api.FormatKey(w.Key), w.State)
}

// Until blocks until met says that the selected objects are as they should be, and returns them as they were then. met
// gets each state that the informer's cache goes through, beginning with the first list, on the goroutine that called
// Until; an error of it ends the wait. States between two that are received at once are not seen: see Object for what
// must not miss any.
//
// The error names what is waited for, what, and is one of:
//   - *UnmetError, wrapping the error of ctx, when that ended first
//   - what makes waiting pointless: the list is forbidden or its options are refused, nothing serves the resource, the
//     server's certificate is not accepted, or an object cannot be decoded into T
//   - the error of met
//
// It corresponds to watchtools.UntilWithSync of client-go.
func Until[T api.Object](ctx context.Context, lw api.ListerWatcher[T], what string, met func(*cache.Snapshot[T]) (bool, error), o Options) (*cache.Snapshot[T], error) {
	var at *cache.Snapshot[T]
	w := wait[T]{lw: lw, o: o, what: what, subject: lw.Resource().String(), check: func(_ deltafifo.Batch[T], now *cache.Snapshot[T]) (bool, error) {
		at = now
		return met(now)
	}}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return at, nil
}

// wait is one wait while it lasts. check and o.OnWaiting are called on the goroutine of run, refused on the reflector's;
// both are over when run returns.
type wait[T api.Object] struct {
	lw      api.ListerWatcher[T]
	o       Options
	what    string // "condition Ready=True"
	subject string // "pods default/web"
	check   func(deltafifo.Batch[T], *cache.Snapshot[T]) (bool, error)
	waiting func() []Waiting // nil where nobody keeps a list

	listed  bool // check has been called
	met     bool
	failed  error // of check
	refused error // what made waiting pointless
	last    error // of the server, since the list was complete or at all
}

// run blocks until the condition is met (nil), ctx ends, or there is no use in waiting.
func (w *wait[T]) run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var i *informer.Informer[T]
	i = informer.New(w.lw, informer.Options[T]{
		LabelSelector: w.o.LabelSelector, FieldSelector: w.o.FieldSelector,
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
		OnBatch: func(batch deltafifo.Batch[T], now *cache.Snapshot[T]) {
			if w.done() || !w.listed && !batch.InitialList {
				return
			}
			w.met, w.failed = w.check(batch, now)
			w.listed = true
			if w.done() {
				stop()
			} else if w.waiting != nil && w.o.OnWaiting != nil && (batch.InitialList || len(batch.Objects) > 0) {
				w.o.OnWaiting(w.waiting())
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

func (w *wait[T]) done() bool { return w.met || w.failed != nil }

func (w *wait[T]) wrap(err error) error {
	return fmt.Errorf("wait for %s of %s: %w", w.what, w.subject, err)
}

func (w *wait[T]) unmet(err error) error {
	u := &UnmetError{Resource: w.lw.Resource(), What: w.what, Subject: w.subject, Listed: w.listed, Last: w.last, Err: err}
	if w.listed && w.waiting != nil {
		u.Waiting = w.waiting()
	}
	return u
}

// pointless tells whether an error will not go away by itself. A streaming list that is refused is no such thing, for
// there will be a paged one, and neither is a watch, for there will be a list.
func pointless(phase reflector.Phase, err error) bool {
	var certificate *apiclient.CertificateError
	if errors.As(err, &certificate) {
		return true
	}
	return phase == reflector.Listing && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
		apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err))
}
