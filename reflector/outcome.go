package reflector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/leatproject/leat/api"
)

// What a reflector holds against a server, beside the errors that the server answers itself. They reach OnError and
// Status.
var (
	// ErrStalled is a request that made no progress in time, and was given up.
	ErrStalled = errors.New("reflector: the server made no progress")
	// ErrBackwards is an answer from before the version that the server had reached already.
	ErrBackwards = errors.New("reflector: the server answered from before the version it had reached")
	// ErrNothing is a stream that the server ended in good order, but before it had sent what it was opened for.
	ErrNothing = errors.New("reflector: the server ended the stream before it brought anything")
	// ErrSamePage is a page of a list that repeats: its continue token is the one that asked for it, or all its objects
	// came with earlier pages.
	ErrSamePage = errors.New("reflector: the server repeated a page of a list")
	// ErrEndlessList is a list that brought more than Options.MaxListObjects, or did not end within an hour.
	ErrEndlessList = errors.New("reflector: the list does not end")
	// ErrUnknownEvent is an event of a type that a watch does not have.
	ErrUnknownEvent = errors.New("reflector: the server sent an event of an unknown type")

	// errRewound is ErrBackwards of an answer that is the truth.
	errRewound = fmt.Errorf("%w, and says that it is the truth", ErrBackwards)
)

// classify finds the ending that an error stands for. Nil is a request that ended in good order.
func classify(err error) ending {
	switch {
	case err == nil:
		return done
	case errors.Is(err, ErrStalled):
		return deadline
	case errors.Is(err, errRewound):
		return rewound
	case errors.Is(err, ErrBackwards):
		return backwards
	case errors.Is(err, api.ErrCannotStream):
		return cannotStream
	case isTooLarge(err):
		return tooLarge
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return expired
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return busy
	case isUnreachable(err):
		return unreachable
	case isRejected(err), errors.Is(err, ErrSamePage), errors.Is(err, ErrEndlessList):
		return rejected
	default:
		return broken
	}
}

// isTooLarge recognises a version that the server has not reached: by its cause, and by what servers said before there
// was one.
func isTooLarge(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "Too large resource version")
}

// isUnreachable tells whether no server was there to judge the request.
func isUnreachable(err error) bool {
	var op *net.OpError
	return utilnet.IsConnectionRefused(err) || errors.As(err, &op) && op.Op == "dial"
}

// isRejected tells whether the server understood the request and will not do it. 408 is a time-out, and a 401 may be
// a token about to be renewed: neither says anything about the request.
func isRejected(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized && code != http.StatusRequestTimeout
}

// retryAfter is the pause that a server asked for with an error, zero if it asked for none.
func retryAfter(err error) time.Duration {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0
	}
	return max(0, time.Duration(status.Status().Details.RetryAfterSeconds)*time.Second) // 32 bits of seconds fit a Duration
}

// watchdog ends the context of a request, with ErrStalled as the cause, when one of its timers runs out.
type watchdog struct {
	cancel context.CancelCauseFunc
	timers []*time.Timer
}

func newWatchdog(ctx context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{cancel: cancel}
}

// after returns a timer that its owner may put off.
func (w *watchdog) after(d time.Duration) *time.Timer {
	t := time.AfterFunc(d, func() { w.cancel(ErrStalled) })
	w.timers = append(w.timers, t)
	return t
}

func (w *watchdog) stop() {
	for _, t := range w.timers {
		t.Stop()
	}
	w.cancel(nil)
}

func stalled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStalled) }
