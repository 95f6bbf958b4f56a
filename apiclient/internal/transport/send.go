package transport

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// Lease is the use of a generation by one request.
type Lease struct {
	generation *generation
	cancel     context.CancelCauseFunc
}

// Cancel ends the request. A running Read of the body returns.
func (l Lease) Cancel() { l.cancel(nil) }

// Release ends the use. The caller calls it once, after it has closed the body.
func (l Lease) Release() { l.generation.release() }

// Send sends a request with a client certificate, which may be nil, and returns the head of the answer, whatever its
// status. The end of the request's context also ends the body. A read has a time limit for the head, unless patient is
// true; the error is then a *HeaderTimeoutError.
func (ts *Transports) Send(req *http.Request, certificate *tls.Certificate, patient bool) (*http.Response, Lease, error) {
	g := ts.acquire(certificate)
	ctx, cancel := context.WithCancelCause(req.Context())
	var timer *time.Timer
	if ts.o.HeaderTimeout > 0 && req.Method == http.MethodGet && !patient {
		timer = time.AfterFunc(ts.o.HeaderTimeout, func() { cancel(&HeaderTimeoutError{after: ts.o.HeaderTimeout}) })
	}
	opening, opened := g.opening.begin(ctx, req.URL.Scheme)
	resp, err := g.http.Do(req.WithContext(opening))
	opened()
	if timer != nil && !timer.Stop() && err == nil {
		err = context.Cause(ctx) // the answer arrived while the time limit ended
		_ = resp.Body.Close()
	}
	if err == nil {
		return resp, Lease{g, cancel}, nil
	}
	if timeout, ok := context.Cause(ctx).(*HeaderTimeoutError); ok {
		err = timeout
	}
	cancel(nil)
	g.release()
	return nil, Lease{}, err
}
