package call_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

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

// newSender returns a sender to a script.
func newSender(t *testing.T, s *script, change func(*call.Options)) *call.Sender {
	t.Helper()
	o := call.Options{
		Server: "https://h/prefix", Transport: transport.Options{RoundTripper: s},
		Fail: func(a call.Answer) call.Failure { return call.Failure{Err: failure{a}} },
	}
	if change != nil {
		change(&o)
	}
	return must.Get(call.New(o))(t)
}

func answer(code int, body string) step { return step{code: code, body: strings.NewReader(body)} }

// tokens is a Source with a new token after each refusal.
type tokens struct{ refused int }

func (s *tokens) Credentials(context.Context) (auth.Credentials, error) {
	return auth.Credentials{Token: secret.New("token-" + string(rune('a'+s.refused)))}, nil
}

func (s *tokens) Refused(auth.Credentials) { s.refused++ }

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
	require.Equal(t, "frames", string(must.Get(io.ReadAll(stream))(t)))
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
