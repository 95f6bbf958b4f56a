package apiclient

import (
	"context"
	"fmt"
	"time"

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

// disruptionBudget is the cause in a refused eviction of policy/v1.
const disruptionBudget metav1.CauseType = "DisruptionBudget"

// notBegun recognises the answers of two filters of kube-apiserver that run before all others: the filter of a server
// that has not installed all paths yet (notfoundhandler), and the filter of a server that shuts down (waitgroup).
func notBegun(s *metav1.Status) bool {
	if s.Reason != metav1.StatusReasonServiceUnavailable {
		return false
	}
	switch s.Message {
	case "the request has been made before all known HTTP paths have been installed, please try again",
		"apiserver is shutting down":
		return true
	}
	return false
}

// Limiter delays requests. A *rate.Limiter of golang.org/x/time/rate is one. It must be safe for concurrent use. It
// corresponds to flowcontrol.RateLimiter of client-go.
type Limiter interface {
	// Wait blocks until a request may be sent. It returns an error if ctx ends first, or if the wait would be too long
	// for ctx.
	Wait(ctx context.Context) error
}

// LimiterError is a request that Config.Limiter delayed until its context ended. It was not sent.
type LimiterError struct {
	Waited time.Duration
	Err    error // the limiter's error, or the error of the context if it has ended
}

// Error names the limiter, so that readers do not look for the delay on the server.
func (e *LimiterError) Error() string {
	return fmt.Sprintf("apiclient: Config.Limiter refused the request after %v: %v", e.Waited.Round(time.Millisecond), e.Err)
}

// Unwrap returns the limiter's error.
func (e *LimiterError) Unwrap() error { return e.Err }

// limit waits for a limiter.
func limit(ctx context.Context, l Limiter) error {
	began := time.Now()
	err := l.Wait(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &LimiterError{Waited: time.Since(began), Err: err}
}
