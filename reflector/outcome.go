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

// The errors of a reflector, in addition to those that a server answers. OnError and Status report them.
var (
	// ErrStalled is the error of a request that made no progress in time. The reflector cancels it.
	ErrStalled = errors.New("reflector: the server made no progress")
	// ErrBackwards is the error of an answer that is older than the version reached.
	ErrBackwards = errors.New("reflector: the answer is older than the version reached before")
	// ErrEndedEarly is the error of a watch that the server closed without an error, but too early: within a second and
	// without an event, or before the initial state of a WatchList was complete.
	ErrEndedEarly = errors.New("reflector: the server closed the watch too early")
	// ErrSamePage is the error of a page without progress: its continue token is the token of its request, or earlier
	// pages contain all its objects.
	ErrSamePage = errors.New("reflector: the server repeated a page of a list")
	// ErrEndlessList is the error of a list with more than Options.MaxListObjects objects, or of a list in pages that
	// took an hour.
	ErrEndlessList = errors.New("reflector: the list does not end")
	// ErrMissed is the error of a watch that Relist ended.
	ErrMissed = errors.New("reflector: the watch did not bring a change that a list shows")
	// ErrUnconfirmed is the error of a watch that ended because the server did not confirm within half a minute that it
	// still has the version of the watch. A list follows.
	ErrUnconfirmed = errors.New("reflector: the server did not confirm its version in time")
	// ErrUnknownEvent is the error of a watch event whose type the protocol does not define.
	ErrUnknownEvent = errors.New("reflector: the server sent an event of an unknown type")

	// errRolledBack is ErrBackwards of a consistent read.
	errRolledBack = fmt.Errorf("%w, and it is a consistent read: the server was restored from a backup", ErrBackwards)
)

// classify returns the outcome of a request that ended with err.
func classify(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, ErrStalled):
		return deadline
	case errors.Is(err, errRolledBack):
		return rolledBack
	case errors.Is(err, ErrBackwards):
		return backwards
	case errors.Is(err, ErrUnconfirmed):
		return unconfirmed
	case errors.Is(err, ErrMissed):
		return missed
	case errors.Is(err, api.ErrNoWatchList):
		return noWatchList
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

// isTooLarge reports whether the server has not reached the version of the request. Old servers say so only in the
// message, newer ones also as a cause.
func isTooLarge(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "Too large resource version")
}

// isUnreachable reports whether the client got no connection, so that no server looked at the request.
func isUnreachable(err error) bool {
	var op *net.OpError
	return utilnet.IsConnectionRefused(err) || errors.As(err, &op) && op.Op == "dial"
}

// isRejected reports whether the server understood the request and refuses it. 408 and 401 do not count, because both
// may be temporary: 408 is a timeout, and after 401 the client may renew its token.
func isRejected(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized && code != http.StatusRequestTimeout
}

// retryAfter returns the pause that the server asked for with an error, or zero.
func retryAfter(err error) time.Duration {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0
	}
	return max(0, time.Duration(status.Status().Details.RetryAfterSeconds)*time.Second) // an int32 of seconds fits into a Duration
}

// watchdog cancels the context of a request, with ErrStalled as the cause, when one of its timers expires.
type watchdog struct {
	cancel context.CancelCauseFunc
	timers []*time.Timer
}

func newWatchdog(ctx context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{cancel: cancel}
}

// after starts a timer. The caller may reset or stop it.
func (w *watchdog) after(d time.Duration) *time.Timer {
	t := time.AfterFunc(d, func() { w.cancel(ErrStalled) })
	w.timers = append(w.timers, t)
	return t
}

// stop ends the timers and the context.
func (w *watchdog) stop() {
	for _, t := range w.timers {
		t.Stop()
	}
	w.cancel(nil)
}

// stalled reports whether a watchdog cancelled ctx.
func stalled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStalled) }
