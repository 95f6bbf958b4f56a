package call

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/leatproject/leat/apiclient/internal/auth"
)

// Call is one call: a request, and how it is sent.
type Call struct {
	Method string
	Path   string // relative to the server's path, not escaped
	Query  url.Values
	Body   []byte

	Accept      string
	ContentType string // of the body
	IfNoneMatch string // the ETag of an answer that the caller has

	Once      bool // sent again only with new credentials
	Unlimited bool // not delayed by the limiter
	Patient   bool // no time limit for the head of the answer

	Observe func(Observed) // gets each attempt when it has ended; may be nil
}

// request makes the request for net/http and returns the credentials that it added.
func (s *Sender) request(ctx context.Context, c Call) (req *http.Request, used auth.Credentials, err error) {
	u := *s.server
	u.Path += c.Path
	u.RawQuery = c.Query.Encode()
	var body io.Reader
	if c.Body != nil {
		body = bytes.NewReader(c.Body)
	}
	req, err = http.NewRequestWithContext(ctx, c.Method, u.String(), body)
	if err != nil {
		return nil, used, err
	}
	req.Header.Set("User-Agent", s.userAgent)
	req.Header.Set("Accept", c.Accept)
	req.Header.Set("Accept-Encoding", s.acceptEncoding)
	if c.Body != nil {
		req.Header.Set("Content-Type", c.ContentType)
	}
	if c.IfNoneMatch != "" {
		req.Header.Set("If-None-Match", c.IfNoneMatch)
	}
	used, err = s.user.Apply(ctx, req.Header)
	if err == nil && s.noCertificate && used.Certificate != nil {
		err = errors.New("apiclient: the credentials have a client certificate, which Config.Transport cannot use")
	}
	return req, used, err
}

// Cause is a reason to end the context of a call. The errors of the call have it instead of the error of the context.
type Cause struct{ Err error }

// Error is the text of the reason.
func (c Cause) Error() string { return c.Err.Error() }

// Ended returns why a context has ended: a Cause, or the context's own error. It returns nil before the end.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if c, ok := context.Cause(ctx).(Cause); ok {
		return c.Err
	}
	return err
}
