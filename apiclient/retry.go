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

// Retry says how often and for how long the client repeats a call. The zero value has good defaults.
//
// A request is repeated if the server asks for it with Retry-After, in seconds or as a date (RFC 9110, 10.2.3). The
// client waits for that time and up to a quarter more, so that clients that were refused together do not come back
// together. It repeats:
//
//   - every call after 429, because the server has done nothing. The 429 that refuses an eviction because of a
//     disruption budget is not repeated, because it is the result.
//   - a read after every 5xx.
//   - a write after the two answers of 503 that kube-apiserver sends before it handles a request, during its start and
//     its shutdown. Every other 503 may come from a proxy that has already forwarded the write.
//
// If a connection ends before the answer begins, a read is repeated up to three times: after a quarter of a second,
// half a second and a second. A write is repeated only if the connection was refused, because then it was not sent.
// Lists and watches are never repeated; the reflector does that.
//
// It corresponds to the WithRetry of client-go's rest.Request.
type Retry struct {
	// Max is the largest number of repetitions. Zero means 10; negative means none.
	Max int
	// Within bounds the duration of a call with its repetitions. If a wait would end later, or after the call's
	// context, the client returns the answer as an error at once. Zero means a minute.
	Within time.Duration
}

const (
	defaultRetryMax    = 10
	defaultRetryWithin = time.Minute
	shortestRetryAfter = time.Second // used if the server asks for no delay

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

// outcome is the result of an attempt.
type outcome struct {
	err        error // nil after a success
	used       Credentials
	code       int           // the status code of the answer; 0 if there is no answer
	retryAsked bool          // the server asks for a repetition
	retryAfter time.Duration // the delay that the server asks for
}

// pause decides whether a request is repeated after its nth attempt, and after which wait.
func (p Retry) pause(r request, o outcome, n int, since time.Duration) (wait time.Duration, again bool) {
	switch {
	case r.once || n > p.Max:
		return 0, false
	case o.code == 0 && n <= maxReconnects && mayReconnect(r.method, o.err):
		wait = reconnectPause << (n - 1)
	case o.retryAsked && mayRepeat(r.method, o):
		wait = max(o.retryAfter, shortestRetryAfter)
	default:
		return 0, false
	}
	left := p.Within - since
	return min(wait+rand.N(wait/4+1), left), wait <= left
}

// mayRepeat reports whether a request can be repeated after an answer.
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

// disruptionBudget is the cause in a refused eviction of policy/v1.
const disruptionBudget metav1.CauseType = "DisruptionBudget"

// notBegun recognises the answers of two filters of kube-apiserver that run before all others: the filter of a server
// that has not installed all paths yet (notfoundhandler), and the filter of a server that shuts down (waitgroup).
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

// mayReconnect reports whether a request can be repeated that got no answer.
func mayReconnect(method string, err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || method == http.MethodGet && lostConnection(err)
}

// lostConnection recognises a connection that ended during a request. net/http has no types for the errors of HTTP/2.
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

// tried adds the number of attempts to an error, if there was more than one.
func tried(err error, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("%w (sent %d times)", err, n)
}

// fits reports whether a wait ends before ctx.
func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > d
}

// waitFor waits for d. It returns false if ctx ends first.
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
