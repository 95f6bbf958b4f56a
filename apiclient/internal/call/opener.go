package call

import (
	"context"
	"io"
	"net/http"

	"github.com/leatproject/leat/apiclient/internal/auth"
)

// Opener opens the stream of an answer by another protocol than HTTP, with a transport that has the newest
// certificates. If the server refuses, it returns the answer with the error.
type Opener func(*http.Request, http.RoundTripper) (io.ReadCloser, *Answer, error)

// Open calls an Opener with the request of a call, and once more if the server refuses the credentials and there are
// new ones. It returns the errors that Do returns.
func (s *Sender) Open(ctx context.Context, c Call, open Opener) (io.ReadCloser, error) {
	stream, used, code, err := s.open(ctx, c, open, 1)
	if code == http.StatusUnauthorized && s.user.Refused(ctx, used) {
		stream, _, _, err = s.open(ctx, c, open, 2)
	}
	return stream, err
}

// open calls an Opener once, with the newest credentials. code is that of an answer.
func (s *Sender) open(ctx context.Context, c Call, open Opener, attempt int) (stream io.ReadCloser, used auth.Credentials, code int, err error) {
	seen := s.observe(c, attempt)
	defer func() {
		if err != nil {
			seen.end(err)
		}
	}()
	req, used, err := s.request(ctx, c)
	if err != nil {
		return nil, used, 0, err
	}
	if err := Ended(ctx); err != nil {
		return nil, used, 0, err // not every dialer checks the context before it dials
	}
	stream, answer, err := open(req, s.transports.Newest(used.Certificate))
	switch ended := Ended(ctx); {
	case err == nil:
		seen.answered(http.StatusSwitchingProtocols, "WebSocket")
		return &opened{ReadCloser: stream, ended: func() error { return Ended(ctx) }, seen: seen}, used, 0, nil
	case ended != nil:
		return nil, used, 0, ended
	case answer == nil:
		return nil, used, 0, s.explain(ctx, err, used)
	}
	seen.answered(answer.Code, "HTTP/1.1")
	s.warnings.deliver(answer.Header["Warning"], s.sent.Clean)
	return nil, used, answer.Code, s.failure(*answer, used).Err
}
