package call

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/apiclient/internal/transport"
)

// maxErrorBody bounds what Options.Fail gets of a body, in bytes. A Status with many causes fits.
const maxErrorBody = 64 << 10

// Options say how calls are sent.
type Options struct {
	Server             string // its URL
	UserAgent          string // empty means the default
	DisableCompression bool   // do not request gzip

	Auth      auth.Options
	Transport transport.Options

	Retry     Retry
	Limit     func(context.Context) error // delays a request; may be nil
	OnWarning func(Warning)               // gets each warning once; may be nil

	// Fail makes an error of an answer that is not successful.
	Fail func(Answer) Failure
}

// Answer is an answer that is not successful.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte // at most 64 KiB of it
}

// Sender sends the calls of one user to one server. It is safe for concurrent use.
type Sender struct {
	server         *url.URL
	userAgent      string
	acceptEncoding string
	noCertificate  bool // the transport cannot use one
	user           *auth.User
	transports     *transport.Transports
	sent           *secret.Sent
	retry          Retry
	limit          func(context.Context) error
	warnings       *warnings // nil if there is no hook
	fail           func(Answer) Failure
}

// New reads the files that the options name. It sends no request. An invalid option is a *auth.FieldError.
func New(o Options) (*Sender, error) {
	server, err := ParseServer(o.Server)
	if err != nil {
		return nil, err
	}
	sent := &secret.Sent{}
	user, err := auth.NewUser(o.Auth, sent)
	if err != nil {
		return nil, err
	}
	transports, err := transport.New(o.Transport, user.Certificate(), sent)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		server:         server,
		userAgent:      o.UserAgent,
		acceptEncoding: "gzip",
		noCertificate:  o.Transport.RoundTripper != nil,
		user:           user,
		transports:     transports,
		sent:           sent,
		retry:          o.Retry.withDefaults(),
		limit:          o.Limit,
		warnings:       newWarnings(o.OnWarning),
		fail:           o.Fail,
	}
	if s.userAgent == "" {
		s.userAgent = defaultUserAgent()
	}
	if o.DisableCompression {
		s.acceptEncoding = "identity"
	}
	return s, nil
}

// Server returns the server's URL. The caller must not change it.
func (s *Sender) Server() *url.URL { return s.server }

// Sent returns the credentials that errors must not quote.
func (s *Sender) Sent() *secret.Sent { return s.sent }

// Transports returns the connections.
func (s *Sender) Transports() *transport.Transports { return s.transports }

// Do sends a call, repeats it as Retry says, and returns a successful answer. The caller closes the body. If the server
// refuses the credentials and there are new ones, the call is sent once more.
func (s *Sender) Do(ctx context.Context, c Call) (*http.Response, error) {
	began, refused := time.Now(), false
	for n := 1; ; n++ {
		resp, o := s.attempt(ctx, c, n)
		if o.Err == nil {
			return resp, nil
		}
		if o.code == http.StatusUnauthorized && !refused && s.user.Refused(ctx, o.used) {
			refused = true
			continue
		}
		wait, again := s.retry.pause(c, o, n, time.Since(began))
		if !again || !fits(ctx, wait) {
			return nil, tried(o.Err, n)
		}
		if ended := Wait(ctx, wait); ended != nil {
			return nil, fmt.Errorf("%w while waiting to send it again after: %w", ended, tried(o.Err, n))
		}
	}
}

// attempt sends a call once, with the newest credentials.
func (s *Sender) attempt(ctx context.Context, c Call, n int) (*http.Response, outcome) {
	seen := s.observe(c, n)
	if s.limit != nil && !c.Unlimited {
		began := time.Now()
		err := s.limit(ctx)
		seen.limited(time.Since(began))
		if err != nil {
			seen.end(err)
			return nil, outcome{Failure: Failure{Err: err}}
		}
	}
	req, used, err := s.request(ctx, c)
	var resp *http.Response
	if err == nil {
		resp, err = s.send(req, used, c.Patient, seen)
	}
	if err != nil {
		seen.end(err)
		return nil, outcome{Failure: Failure{Err: err}, used: used}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, outcome{used: used}
	}
	defer resp.Body.Close()
	failure := s.failure(Answer{resp.StatusCode, resp.Header, Beginning(resp.Body, maxErrorBody)}, used)
	if err := Ended(ctx); err != nil {
		return nil, outcome{Failure: Failure{Err: err}} // a cancelled caller gets no partial reason
	}
	seen.failed(failure.Err)
	return nil, outcome{Failure: failure, used: used, code: resp.StatusCode}
}

// send sends a request and returns the head of the answer, whatever its status. The end of the request's context also
// ends the body, and Read then returns the error of the context. Close of the body releases everything.
func (s *Sender) send(req *http.Request, used auth.Credentials, patient bool, seen *observation) (*http.Response, error) {
	ctx := req.Context()
	resp, lease, err := s.transports.Send(req, used.Certificate, patient)
	if err != nil {
		return nil, s.explain(ctx, err, used)
	}
	seen.answered(resp.StatusCode, resp.Proto)
	b := &body{ReadCloser: seen.counted(resp.Body), ended: func() error { return Ended(ctx) }, lease: lease, seen: seen}
	resp.Body = b
	s.warnings.deliver(resp.Header["Warning"], s.sent.Clean)
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode == http.StatusSwitchingProtocols: // the connection is the body, and the context does not end it
		_ = b.ReadCloser.Close()
		b.ReadCloser = http.NoBody
	case encoding == "", encoding == "identity":
	case encoding == "gzip":
		b.ReadCloser = transport.Inflate(b.ReadCloser)
	default:
		err = fmt.Errorf("apiclient: the answer has the content encoding %.64q, which the client does not accept", encoding)
		err = transport.AsError(s.sent.CleanError(err, nil))
		seen.failed(err)
		_ = b.Close()
		return nil, err
	}
	return resp, nil
}

// explain returns the cause of a request without an answer: the caller's context, the time limit, or the error of the
// transport.
func (s *Sender) explain(ctx context.Context, err error, used auth.Credentials) error {
	if ended := Ended(ctx); ended != nil {
		return ended
	}
	if timeout, ok := err.(*transport.HeaderTimeoutError); ok {
		return timeout
	}
	return transport.AsError(s.transports.Explain(secret.WithoutURL(err), s.server.Host, s.user, used))
}

// failure makes an error of an answer that is not successful.
func (s *Sender) failure(a Answer, used auth.Credentials) Failure {
	f := s.fail(a)
	if a.Code == http.StatusUnauthorized {
		f.Err = transport.ExplainUnauthorized(f.Err, s.user, used)
	}
	return f
}
