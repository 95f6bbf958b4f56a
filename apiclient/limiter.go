package apiclient

import (
	"context"
	"fmt"
	"time"
)

// Limiter holds requests back; a *rate.Limiter of golang.org/x/time/rate is one. It must be safe for concurrent use.
// It corresponds to flowcontrol.RateLimiter of client-go.
type Limiter interface {
	// Wait blocks until a request may be sent, and fails when ctx ends first or is bound to.
	Wait(ctx context.Context) error
}

// LimiterError is a request that Config.Limiter did not let through before its context ended. Nothing was sent.
type LimiterError struct {
	Waited time.Duration
	Err    error // what the limiter said, or the error of the context if that has ended
}

// Error names the limiter, so that nobody looks for the delay at the server.
func (e *LimiterError) Error() string {
	return fmt.Sprintf("apiclient: Config.Limiter let the request wait for %v and then not through: %v", e.Waited.Round(time.Millisecond), e.Err)
}

// Unwrap returns what the limiter said.
func (e *LimiterError) Unwrap() error { return e.Err }

// limit waits for the limiter, if there is one and r is no watch: a watch costs a server little and lasts for long, and
// one that is held back makes everything late.
func (c *Client) limit(ctx context.Context, r request) (waited time.Duration, err error) {
	if c.limiter == nil || r.watch {
		return 0, nil
	}
	began := time.Now()
	err = c.limiter.Wait(ctx)
	waited = time.Since(began)
	if err == nil {
		return waited, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return waited, &LimiterError{Waited: waited, Err: err}
}
