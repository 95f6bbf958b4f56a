package reflector

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

var (
	// errStalled is the cause with which a streaming list is given up.
	errStalled = errors.New("reflector: the streaming list made no progress")
	// errBackwards is what a server's contradiction is reported as.
	errBackwards = errors.New("reflector: the server answered from before the version it had reached")
)

// classify finds the ending that an error stands for. Nil is a request that ended in good order.
func classify(err error) ending {
	switch {
	case err == nil:
		return done
	case errors.Is(err, errStalled):
		return deadline
	case errors.Is(err, errBackwards):
		return backwards
	case isTooLarge(err):
		return tooLarge
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return expired
	case apierrors.IsTooManyRequests(err), isUnreachable(err):
		return busy
	case isRejected(err):
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

func retryAfter(err error) time.Duration {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0
	}
	return time.Duration(status.Status().Details.RetryAfterSeconds) * time.Second
}
