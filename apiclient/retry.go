package apiclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Retry says how often a call is sent again that the server did not take, and for how long. The zero value is useful.
//
// Sent again is what the server asks for with Retry-After, in seconds or as a date (RFC 9110, 10.2.3), after the wait
// that it asks for and up to a quarter more, so that those who were sent away together do not come back together:
//
//   - any call after 429, which says that nothing was done. The 429 that refuses an eviction for the sake of a
//     disruption budget is not such an answer, but the outcome.
//   - a read after any 5xx.
//   - a write after the two answers of 503 that kube-apiserver gives before it looks at a request, while it starts and
//     while it shuts down. Any other 503 may come from a proxy that had passed the write on.
//
// A read is also sent again, up to three times and a quarter of a second, half a second and a second later, when its
// connection ended before the answer began; a write only where the connection was refused, so that it cannot have been
// sent. Lists and watches are sent once, whatever comes: the reflector decides about those.
//
// It corresponds to the WithRetry of client-go's rest.Request.
type Retry struct {
	// Max is how often a call is sent again at most. Zero means 10, a negative number never.
	Max int
	// Within bounds the whole: where a wait would end later than so long after the call began, or after its context, the
	// answer is returned at once as the error that it is. Zero means a minute.
	Within time.Duration
}

const (
	defaultRetryMax    = 10
	defaultRetryWithin = time.Minute
	shortestRetryAfter = time.Second // what "at once" is taken for

	maxReconnects  = 3
	reconnectPause = 250 * time.Millisecond
)

func (p Retry) withDefaults() Retry {
	if p.Max == 0 {
		p.Max = defaultRetryMax
	}
	if p.Within <= 0 {
		p.Within = defaultRetryWithin
	}
	return p
}

// outcome is how an attempt came out.
type outcome struct {
	err        error // nil for a success
	used       Credentials
	code       int           // of the answer; 0 without one
	asked      bool          // to come back
	retryAfter time.Duration // when, if asked
}

// pause decides whether a request is sent again after its nth attempt, and how long later.
func (p Retry) pause(r request, o outcome, n int, since time.Duration) (wait time.Duration, again bool) {
	switch {
	case r.once || n > p.Max:
		return 0, false
	case o.code == 0 && n <= maxReconnects && mayReconnect(r.method, o.err):
		wait = reconnectPause << (n - 1)
	case o.asked && mayRepeat(r.method, o):
		wait = max(o.retryAfter, shortestRetryAfter)
	default:
		return 0, false
	}
	left := p.Within - since
	return min(wait+rand.N(wait/4+1), left), wait <= left
}

// mayRepeat tells whether a request can be sent again that was answered.
func mayRepeat(method string, o outcome) bool {
	switch {
	case o.code == http.StatusTooManyRequests:
		return !apierrors.HasStatusCause(o.err, disruptionBudget)
	case method == http.MethodGet:
		return o.code >= 500
	default:
		return o.code == http.StatusServiceUnavailable && notBegun(o.err)
	}
}

// disruptionBudget is policy/v1's cause of a refused eviction.
const disruptionBudget metav1.CauseType = "DisruptionBudget"

// notBegun recognises the answers of filters that stand before everything in a Kubernetes API server: of one that has
// not installed its paths yet (notfoundhandler) and of one that shuts down (waitgroup).
func notBegun(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonServiceUnavailable {
		return false
	}
	switch status.Status().Message {
	case "the request has been made before all known HTTP paths have been installed, please try again",
		"apiserver is shutting down":
		return true
	}
	return false
}

// mayReconnect tells whether a request can be sent again that was not answered.
func mayReconnect(method string, err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || method == http.MethodGet && lostConnection(err)
}

// lostConnection recognises a connection that ended under a request. net/http has no types for what HTTP/2 says.
func lostConnection(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	text := err.Error()
	for _, end := range []string{
		"http2: client connection lost", "http2: server sent GOAWAY", "http: server closed idle connection",
	} {
		if strings.Contains(text, end) {
			return true
		}
	}
	return false
}

// tried says how often a request was sent, where that was more than once.
func tried(err error, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("%w (sent %d times)", err, n)
}

// fits tells whether a wait will be over before ctx is.
func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > d
}

// waitFor waits unless ctx ends first.
func waitFor(ctx context.Context, d time.Duration) (waited bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
