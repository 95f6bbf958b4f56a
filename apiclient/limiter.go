package apiclient

import (
	"context"
	"fmt"
	"time"
)

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
