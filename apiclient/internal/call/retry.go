package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
)

// Retry bounds the repetition of a call. Zero means the default.
type Retry struct {
	Max    int           // repetitions; negative means none
	Within time.Duration // the duration of a call with its repetitions
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

// Failure is what a caller of this package makes of an answer that is not successful.
type Failure struct {
	Err        error
	Asked      bool          // the server asks for a repetition
	RetryAfter time.Duration // the delay that the server asks for
	Final      bool          // a 429 that is the result
	NotBegun   bool          // a 503 from before the server has done anything
}

// outcome is the result of an attempt.
type outcome struct {
	Failure // without Err after a success
	used    auth.Credentials
	code    int // the status code of the answer; 0 if there is no answer
}

// pause decides whether a call is repeated after its nth attempt, and after which wait.
func (p Retry) pause(c Call, o outcome, n int, since time.Duration) (wait time.Duration, again bool) {
	switch {
	case c.Once || n > p.Max:
		return 0, false
	case o.code == 0 && n <= maxReconnects && mayReconnect(c.Method, o.Err):
		wait = reconnectPause << (n - 1)
	case o.Asked && mayRepeat(c.Method, o):
		wait = max(o.RetryAfter, shortestRetryAfter)
	default:
		return 0, false
	}
	left := p.Within - since
	return min(wait+rand.N(wait/4+1), left), wait <= left
}

// mayRepeat reports whether a call can be repeated after an answer.
func mayRepeat(method string, o outcome) bool {
	switch {
	case o.code == http.StatusTooManyRequests:
		return !o.Final
	case method == http.MethodGet:
		return o.code >= 500
	default:
		return o.code == http.StatusServiceUnavailable && o.NotBegun
	}
}

// mayReconnect reports whether a call can be repeated that got no answer.
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

// Wait waits for d. If ctx ends earlier, it returns the error of ctx.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RetryAfter parses the header Retry-After, which is a number of seconds or a date (RFC 9110, 10.2.3). A date in the
// past means no delay. ok is false if the value is invalid.
func RetryAfter(v string, now time.Time) (seconds int32, ok bool) {
	const most = 24 * 60 * 60
	if n, err := strconv.ParseInt(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return int32(max(0, min(n, most))), n >= 0
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	wait := min(t.Sub(now), most*time.Second) // bounded before it is rounded up, because a distant year would overflow
	return int32(max(0, (wait+time.Second-1)/time.Second)), true
}
