package apiclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// defaultHeaderTimeout is twice the time limit of kube-apiserver for a request.
const defaultHeaderTimeout = 2 * time.Minute

// Client sends requests to one server as one user. All clients that NewTyped, NewPartial and Subresource make from it
// share its connections. It is safe for concurrent use and starts no goroutine. It corresponds to rest.Interface of
// client-go.
type Client struct {
	base            *url.URL
	credentials     *credentials
	transports      *transports
	userAgent       string
	headerTimeout   time.Duration // 0 for none
	acceptEncoding  string
	disableProtobuf bool
	maxObjectBytes  int
	retry           Retry
	limiter         Limiter       // nil for none
	onRequest       func(Request) // nil if there is no hook
	warnings        *warnings     // nil if there is no hook
	codecs          *codecs
}

// New makes a client. It sends no request. It reads the files that the configuration names, so a missing file is an
// error of New. Invalid configuration is a *FieldError. It corresponds to rest.RESTClientFor of client-go.
func New(c Config) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	base, err := parseHost(c.Host)
	if err != nil {
		return nil, err
	}
	cr, err := newCredentials(c)
	if err != nil {
		return nil, err
	}
	client := &Client{
		base:            base,
		credentials:     cr,
		userAgent:       c.UserAgent,
		headerTimeout:   max(0, c.ResponseHeaderTimeout),
		acceptEncoding:  "gzip",
		disableProtobuf: c.DisableProtobuf,
		maxObjectBytes:  cmp.Or(c.MaxObjectBytes, codec.DefaultMaxObjectBytes),
		retry:           c.Retry.withDefaults(),
		limiter:         c.Limiter,
		onRequest:       c.OnRequest,
		warnings:        newWarnings(c.OnWarning),
		codecs:          &codecs{},
	}
	if client.userAgent == "" {
		client.userAgent = defaultUserAgent()
	}
	if c.ResponseHeaderTimeout == 0 {
		client.headerTimeout = defaultHeaderTimeout
	}
	if c.DisableCompression {
		client.acceptEncoding = "identity"
	}
	if client.transports, err = newTransports(c, cr.certificate(), cr.sent); err != nil {
		return nil, err
	}
	return client, nil
}

// Host returns the server's URL. It has no credentials.
func (c *Client) Host() string { return c.base.String() }

// CloseIdleConnections closes connections without requests. The client can still be used.
func (c *Client) CloseIdleConnections() { c.transports.closeIdle() }

// String names the server, without credentials.
func (c *Client) String() string { return "apiclient.Client(" + c.base.String() + ")" }

// GoString returns String.
func (c *Client) GoString() string { return c.String() }

// Format writes String for every verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// checkRedirect follows a redirect only if a read stays on the same server. A proxy that adds a slash to the path sends
// such a redirect.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if sameServer(next.URL, first.URL) && first.Method == http.MethodGet && len(via) < 10 {
		return nil
	}
	return &RedirectError{From: bareURL(first.URL), To: bareURL(next.URL), Method: first.Method}
}

func sameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func bareURL(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return quote.Short(bare.String(), maxQuotedURL)
}

// send sends a request and returns the head of the answer, whatever its status. The end of the request's context also
// ends the body, and Read then returns the error of the context. Close of the body releases everything.
func (c *Client) send(req *http.Request, used Credentials, seen *observation) (*http.Response, error) {
	g, err := c.transports.acquire(used.Certificate)
	if err != nil {
		return nil, err
	}
	parent := req.Context()
	ctx, cancel := context.WithCancelCause(parent)
	var timer *time.Timer
	if c.headerTimeout > 0 && req.Method == http.MethodGet {
		timer = time.AfterFunc(c.headerTimeout, func() { cancel(&headerTimeoutError{after: c.headerTimeout}) })
	}
	resp, err := g.http.Do(req.WithContext(ctx))
	if timer != nil && !timer.Stop() && err == nil {
		err = context.Cause(ctx) // the answer arrived while the time limit ended
		_ = resp.Body.Close()
	}
	if err != nil {
		err = c.explain(ctx, parent, err, used)
		cancel(nil)
		g.release()
		return nil, err
	}
	seen.answered(resp.StatusCode, resp.Proto)
	b := &body{
		ReadCloser: seen.counted(resp.Body), givenUp: func() error { return givenUp(parent) }, cancel: cancel,
		generation: g, seen: seen,
	}
	resp.Body = b
	c.warnings.deliver(resp.Header["Warning"], c.credentials.sent.clean)
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode == http.StatusSwitchingProtocols: // the connection is the body, and the context does not end it
		_ = b.ReadCloser.Close()
		b.ReadCloser = http.NoBody
	case encoding == "", encoding == "identity":
	case encoding == "gzip":
		b.ReadCloser = newInflater(b.ReadCloser)
	default:
		err = fmt.Errorf("apiclient: the answer has the content encoding %.64q, which the client does not accept", encoding)
		err = asTransportError(c.credentials.sent.cleanError(err))
		seen.failed(err)
		_ = b.Close()
		return nil, err
	}
	return resp, nil
}

// explain returns the cause of a request without an answer: the caller's context, the time limit, or the error of the
// transport.
func (c *Client) explain(ctx, parent context.Context, err error, used Credentials) error {
	if err := givenUp(parent); err != nil {
		return err
	}
	var timeout *headerTimeoutError
	if errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	return asTransportError(c.explainTransport(bareURLError(err), used))
}

// body is the body of an answer. Its Close also releases the request's context.
type body struct {
	io.ReadCloser
	givenUp    func() error // returns the error of the caller's context
	cancel     context.CancelCauseFunc
	generation *generation
	closed     atomic.Bool
	aborted    atomic.Bool
	seen       *observation
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil { // even io.EOF: a connection that the context closed may look like one that ended
		if givenUp := b.givenUp(); givenUp != nil {
			err = givenUp
		} else if err != io.EOF {
			err = asTransportError(err)
		}
	}
	if !b.aborted.Load() { // after an abort, the error is not the server's
		b.seen.bodyFailed(err)
	}
	return n, err
}

// abort ends a running Read. Close is still needed.
func (b *body) abort() {
	b.aborted.Store(true)
	b.cancel(nil)
}

func (b *body) Close() error {
	b.cancel(nil)
	err := b.ReadCloser.Close()
	if !b.closed.Swap(true) {
		b.generation.release()
		b.seen.ended(nil)
	}
	return err
}
