package call_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/apiclient/internal/transport"
	"github.com/leatproject/leat/internal/fixture/must"
)

// step is an answer of a server, or an error.
type step struct {
	code int
	body io.Reader
	err  error
}

// script is a server that answers the same steps to each call. It repeats the last one.
type script struct {
	steps    []step
	requests []*http.Request
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	now := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, req)
	if now.err != nil {
		return nil, now.err
	}
	if now.body == nil {
		now.body = strings.NewReader("body")
	}
	return &http.Response{StatusCode: now.code, Proto: "HTTP/1.1", Header: http.Header{}, Body: io.NopCloser(now.body), Request: req}, nil
}

// failure is the error of an answer in these tests.
type failure struct{ call.Answer }

func (f failure) Error() string { return http.StatusText(f.Code) + " " + string(f.Body) }

// newSender returns a sender to a script. A 429 and a 503 ask for a repetition after a second.
func newSender(t *testing.T, s *script, change func(*call.Options)) *call.Sender {
	t.Helper()
	o := call.Options{
		Server: "https://h/prefix", Transport: transport.Options{RoundTripper: s},
		Fail: func(a call.Answer) call.Failure {
			busy := a.Code == http.StatusTooManyRequests || a.Code == http.StatusServiceUnavailable
			return call.Failure{Err: failure{a}, Asked: busy, RetryAfter: time.Second, Final: string(a.Body) == "final", NotBegun: string(a.Body) == "not begun"}
		},
	}
	if change != nil {
		change(&o)
	}
	return must.Get(call.New(o))(t)
}

func answer(code int, body string) step { return step{code: code, body: strings.NewReader(body)} }

func TestWhatIsSentAgain(t *testing.T) {
	refused := step{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	lost := step{err: io.ErrUnexpectedEOF}
	for _, c := range []struct {
		name  string
		call  call.Call
		first step
		again bool
	}{
		{"a read after 429", call.Call{Method: "GET"}, answer(429, ""), true},
		{"a write after 429", call.Call{Method: "POST"}, answer(429, ""), true},
		{"a final 429", call.Call{Method: "POST"}, answer(429, "final"), false},
		{"a read after 503", call.Call{Method: "GET"}, answer(503, ""), true},
		{"a write after 503", call.Call{Method: "PUT"}, answer(503, ""), false},
		{"a write that has not begun", call.Call{Method: "PUT"}, answer(503, "not begun"), true},
		{"an answer that does not ask for it", call.Call{Method: "GET"}, answer(500, ""), false},
		{"a call that is sent once", call.Call{Method: "GET", Once: true}, answer(429, ""), false},
		{"a read without a connection", call.Call{Method: "GET"}, refused, true},
		{"a write without a connection", call.Call{Method: "POST"}, refused, true},
		{"a read whose connection ends", call.Call{Method: "GET"}, lost, true},
		{"a write whose connection ends", call.Call{Method: "POST"}, lost, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{c.first, answer(200, "")}}
				resp, err := newSender(t, s, nil).Do(t.Context(), c.call)
				if !c.again {
					require.Error(t, err)
					require.Len(t, s.requests, 1)
					return
				}
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Len(t, s.requests, 2)
			})
		})
	}
}

func TestRepetitionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(429, "")}}
		require.EqualError(t, must.Err(newSender(t, s, nil).Do(t.Context(), call.Call{Method: "GET"})), "Too Many Requests  (sent 11 times)")
		s = &script{steps: []step{answer(429, "")}}
		_, err := newSender(t, s, func(o *call.Options) { o.Retry.Max = -1 }).Do(t.Context(), call.Call{Method: "GET"})
		require.EqualError(t, err, "Too Many Requests ")
		s = &script{steps: []step{answer(429, "")}}
		start := time.Now()
		_, err = newSender(t, s, func(o *call.Options) { o.Retry.Within = 5 * time.Second }).Do(t.Context(), call.Call{Method: "GET"})
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(start), 5*time.Second)
		require.GreaterOrEqual(t, len(s.requests), 4)
	})
}

// tokens is a Source with a new token after each refusal.
type tokens struct{ refused int }

func (s *tokens) Credentials(context.Context) (auth.Credentials, error) {
	return auth.Credentials{Token: secret.New("token-" + string(rune('a'+s.refused)))}, nil
}

func (s *tokens) Refused(auth.Credentials) { s.refused++ }

func TestRefusedCredentialsAreReplacedOnce(t *testing.T) {
	source := &tokens{}
	s := &script{steps: []step{answer(401, "you sent token-a")}}
	sender := newSender(t, s, func(o *call.Options) { o.Auth.Source, o.Auth.SourceName = source, "a source" })
	require.ErrorContains(t, must.Err(sender.Do(t.Context(), call.Call{Method: "POST", Body: []byte("x")})), "Unauthorized")
	require.Len(t, s.requests, 2)
	require.Equal(t, "Bearer token-b", s.requests[1].Header.Get("Authorization"))
	require.Equal(t, 1, source.refused)
	require.Equal(t, 2, sender.Sent().Tokens())
}

func TestACertificateNeedsATransportThatCanUseIt(t *testing.T) {
	s := &script{steps: []step{answer(200, "")}}
	source := certified{Certificate: &tls.Certificate{Certificate: [][]byte{{1}}, PrivateKey: struct{}{}}}
	sender := newSender(t, s, func(o *call.Options) { o.Auth.Source, o.Auth.SourceName = source, "a source" })
	require.ErrorContains(t, must.Err(sender.Do(t.Context(), call.Call{Method: "GET"})), "which Config.Transport cannot use")
	require.Empty(t, s.requests)
}

// certified is a Source with a certificate.
type certified auth.Credentials

func (c certified) Credentials(context.Context) (auth.Credentials, error) {
	return auth.Credentials(c), nil
}
func (c certified) Refused(auth.Credentials) {}

func TestARequestHasTheFieldsOfItsCall(t *testing.T) {
	s := &script{steps: []step{answer(200, "")}}
	sender := newSender(t, s, func(o *call.Options) { o.UserAgent, o.DisableCompression = "me", true })
	resp := must.Get(sender.Do(t.Context(), call.Call{
		Method: "PATCH", Path: "/a b", Query: url.Values{"q": {"1"}}, Body: []byte("{}"), Accept: "x/y", ContentType: "z", IfNoneMatch: `"1"`,
	}))(t)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "https://h/prefix/a%20b?q=1", s.requests[0].URL.String())
	require.Equal(t, http.Header{
		"User-Agent": {"me"}, "Accept": {"x/y"}, "Accept-Encoding": {"identity"}, "Content-Type": {"z"}, "If-None-Match": {`"1"`},
	}, s.requests[0].Header)
}

func TestTheLimiterDelaysCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		waits := 0
		s := &script{steps: []step{answer(200, "")}}
		sender := newSender(t, s, func(o *call.Options) {
			o.Limit = func(context.Context) error {
				if waits++; waits == 2 {
					return failed
				}
				<-time.After(time.Second)
				return nil
			}
		})
		var seen []call.Observed
		observed := call.Call{Method: "GET", Observe: func(o call.Observed) { seen = append(seen, o) }}
		resp := must.Get(sender.Do(t.Context(), observed))(t)
		require.NoError(t, resp.Body.Close())
		_, err := sender.Do(t.Context(), observed)
		require.Same(t, failed, err)
		resp = must.Get(sender.Do(t.Context(), call.Call{Method: "GET", Unlimited: true}))(t)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 2, waits)
		require.Equal(t, []call.Observed{
			{Attempt: 1, Code: 200, Protocol: "HTTP/1.1", Limited: time.Second}, {Attempt: 1, Err: failed},
		}, seen)
	})
}

func TestEachAttemptIsObservedAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(503, "busy"), answer(200, "12345")}}
		var seen []call.Observed
		resp := must.Get(newSender(t, s, nil).Do(t.Context(), call.Call{Method: "GET", Observe: func(o call.Observed) { seen = append(seen, o) }}))(t)
		require.Len(t, seen, 1)
		require.ErrorAs(t, seen[0].Err, &failure{})
		require.Equal(t, 503, seen[0].Code)
		must.Get(io.ReadFull(resp.Body, make([]byte, 3)))(t)
		<-time.After(time.Second)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []call.Observed{{Attempt: 2, Code: 200, Protocol: "HTTP/1.1", Received: 3, Total: time.Second}}, seen[1:])
	})
}

func TestAContextEndsWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		for cause, want := range map[error]error{call.Cause{Err: why}: why, errors.New("of a caller"): context.Canceled} {
			ctx, cancel := context.WithCancelCause(t.Context())
			require.NoError(t, call.Ended(ctx))
			s := &script{steps: []step{{code: 200, body: io.MultiReader(strings.NewReader("x"), broken{})}}}
			resp := must.Get(newSender(t, s, nil).Do(ctx, call.Call{Method: "GET"}))(t)
			cancel(cause)
			_, err := io.ReadAll(resp.Body)
			require.Same(t, want, err)
			require.NoError(t, resp.Body.Close())
			require.Same(t, want, call.Ended(ctx))
			s = &script{steps: []step{{err: io.ErrUnexpectedEOF}}}
			require.ErrorIs(t, must.Err(newSender(t, s, nil).Do(ctx, call.Call{Method: "GET"})), want)
		}
	})
}

// broken is a connection that has ended.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestABrokenBodyIsAnErrorOfTheTransport(t *testing.T) {
	s := &script{steps: []step{{code: 200, body: broken{}}}}
	resp := must.Get(newSender(t, s, nil).Do(t.Context(), call.Call{Method: "GET"}))(t)
	_, err := io.ReadAll(resp.Body)
	var typed *transport.Error
	require.ErrorAs(t, err, &typed)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, resp.Body.Close())
}

func TestAnOpenerGetsTheRequest(t *testing.T) {
	s := &script{steps: []step{answer(200, "")}}
	source := &tokens{}
	sender := newSender(t, s, func(o *call.Options) { o.Auth.Source, o.Auth.SourceName = source, "a source" })
	var seen []call.Observed
	c := call.Call{Method: "GET", Path: "/w", Observe: func(o call.Observed) { seen = append(seen, o) }}
	var sent []string
	stream, err := sender.Open(t.Context(), c, func(req *http.Request, rt http.RoundTripper) (io.ReadCloser, *call.Answer, error) {
		require.Same(t, s, rt)
		sent = append(sent, req.Header.Get("Authorization"))
		if len(sent) == 1 {
			return nil, &call.Answer{Code: 401, Body: []byte("no")}, errors.New("no WebSocket")
		}
		return io.NopCloser(strings.NewReader("frames")), nil, nil
	})
	require.NoError(t, err)
	content := must.Get(io.ReadAll(stream))(t)
	require.Equal(t, "frames", string(content))
	require.NoError(t, stream.Close())
	require.Equal(t, []string{"Bearer token-a", "Bearer token-b"}, sent)
	require.Len(t, seen, 2)
	require.Equal(t, 401, seen[0].Code)
	require.EqualError(t, seen[0].Err, "Unauthorized no")
	require.Equal(t, int64(6), seen[1].Received)
	require.Equal(t, "WebSocket", seen[1].Protocol)

	_, err = sender.Open(t.Context(), c, func(*http.Request, http.RoundTripper) (io.ReadCloser, *call.Answer, error) {
		return nil, nil, &url.Error{Op: "Get", URL: "https://joe:pw@h", Err: syscall.ECONNRESET}
	})
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NotContains(t, err.Error(), "pw")
}

func TestTheBeginningOfAnAnswer(t *testing.T) {
	require.Equal(t, "abc", string(call.Beginning(io.NopCloser(strings.NewReader("abcdef")), 3)))
	require.Equal(t, "abc", string(call.Beginning(io.NopCloser(io.MultiReader(strings.NewReader("abc"), broken{})), 9)))
}
