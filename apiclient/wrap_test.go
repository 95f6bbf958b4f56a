package apiclient_test

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

func same(next http.RoundTripper) http.RoundTripper { return next }

// tracer is a RoundTripper of a user. It adds a header, and records requests as a log would.
type tracer struct {
	next   http.RoundTripper
	change func(*http.Request) *http.Request

	mu  sync.Mutex
	log []string
}

func (t *tracer) wrap(next http.RoundTripper) http.RoundTripper {
	t.next = next
	return t
}

func (t *tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Traceparent", "00-1-2-01")
	if t.change != nil {
		req = t.change(req)
	}
	t.note(req)
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		t.note(resp.Request)
	}
	return resp, err
}

func (t *tracer) note(req *http.Request) {
	dump, err := httputil.DumpRequest(req, false)
	if err != nil {
		dump = []byte(err.Error())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, string(dump))
}

// TestWrapTransport wraps a client whose first attempt is refused. The wrapper gets both attempts, and their answers,
// without the credentials.
func TestWrapTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []http.Header
		busy := header("Retry-After", "1", answer(429, "text/plain", "later"))
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header)
			if len(got) == 1 {
				busy(w, r)
				return
			}
			answer(200, jsonType, onePod)(w, r)
		})
		wrapper := &tracer{}
		cfg.BearerToken, cfg.WrapTransport = apiclient.NewSecret(secret), wrapper.wrap
		must.Get(pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{}))(t)
		require.Len(t, got, 2)
		for _, h := range got {
			require.Equal(t, "Bearer "+secret, h.Get("Authorization"))
			require.Equal(t, "00-1-2-01", h.Get("Traceparent"))
		}
		require.Len(t, wrapper.log, 4, "two requests and two answers")
		for _, text := range wrapper.log {
			require.NotContains(t, text, secret)
			require.NotContains(t, text, "Authorization")
		}
	})
}

// closer is a body that records its Close.
type closer struct{ closed bool }

func (*closer) Read([]byte) (int, error) { return 0, io.EOF }

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// TestWrappedRequestsThatAreChanged has wrappers that change the server, the credentials and the context.
func TestWrappedRequestsThatAreChanged(t *testing.T) {
	var closes closer
	for name, c := range map[string]struct {
		change func(*http.Request) *http.Request
		want   string // Authorization that the server gets
		fails  string
	}{
		"another server": {change: func(r *http.Request) *http.Request {
			r.URL = &url.URL{Scheme: r.URL.Scheme, Host: "elsewhere.memory", Path: r.URL.Path}
			return r
		}},
		"other credentials": {change: func(r *http.Request) *http.Request {
			r.Header.Set("Authorization", "Bearer mine")
			return r
		}, want: "Bearer mine"},
		"another context": {change: func(r *http.Request) *http.Request {
			r = r.WithContext(t.Context())
			r.Body = &closes
			return r
		}, fails: "sent a request without the context of the client's request"},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			got := "nothing"
			cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("Authorization")
				answer(200, jsonType, onePod)(w, r)
			})
			cfg.BearerToken, cfg.WrapTransport = apiclient.NewSecret(secret), (&tracer{change: c.change}).wrap
			_, err := pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.Equal(t, "nothing", got)
				require.True(t, closes.closed, "the body")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// TestAWrapperServesAllTransports rotates a client certificate. The new connection uses the same wrapper, and
// CloseIdleConnections closes connections although the wrapper does not have this method.
func TestAWrapperServesAllTransports(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		made, wrapper := 0, &tracer{}
		s := &source{}
		cfg := r.config()
		cfg.Credentials = s
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			made++
			return wrapper.wrap(next)
		}
		v := r.view(cfg)
		for _, name := range []string{"first", "second"} {
			s.mu.Lock()
			s.newest.Certificate = certificateOf(t, r.authority, name)
			s.mu.Unlock()
			r.is(v, name)
		}
		require.Equal(t, 1, made)
		require.Len(t, wrapper.log, 4)
		require.EqualValues(t, 2, r.opened.Load())

		hangUp(v)
		in(2 * time.Second)
		require.EqualValues(t, 2, r.closed.Load(), "all connections are closed")
	})
}
