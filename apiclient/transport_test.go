package apiclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

func frame(version int) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"p%d","uid":"u","resourceVersion":"%d"}}}`+"\n", version, version)
}

// TestCompressedWatchesAreNotLate sends one event and then nothing. The event must arrive, whether the server flushes
// one gzip stream or ends a member after each event.
func TestCompressedWatchesAreNotLate(t *testing.T) {
	for _, members := range []bool{true, false} {
		fixture.Bubble(t, "members="+strconv.FormatBool(members), func(t *testing.T) {
			cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
				w.Header().Set("Content-Type", jsonType)
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				for v := 1; v <= 3; v++ {
					_, _ = io.WriteString(z, frame(v))
					if members {
						_ = z.Close()
					} else {
						_ = z.Flush()
					}
					_ = http.NewResponseController(w).Flush()
					if members {
						z.Reset(w)
					}
					<-time.After(time.Hour)
				}
				if !members {
					_ = z.Close()
				}
			})
			start := time.Now()
			r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
			seen := 0
			for event, err := range r.Watch(t.Context(), api.Options[*pod]{}) {
				require.NoError(t, err)
				require.Equal(t, time.Duration(seen)*time.Hour, time.Since(start))
				seen++
				require.Equal(t, strconv.Itoa(seen), event.ResourceVersion)
			}
			require.Equal(t, 3, seen)
		})
	}
}

func TestGzipOfAnyShape(t *testing.T) {
	zip := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	half := len(onePod) / 2
	for name, c := range map[string]struct {
		body string
		ok   bool
	}{
		"one member":             {zip(onePod), true},
		"two members":            {zip(onePod[:half]) + zip(onePod[half:]), true},
		"empty members":          {zip("") + zip(onePod) + zip("") + zip(" "), true},
		"nothing":                {"", false},
		"only an empty member":   {zip(""), false},
		"cut in the header":      {zip(onePod)[:5], false},
		"cut in the data":        {zip(onePod)[:40], false},
		"cut in the sum":         {zip(onePod)[:len(zip(onePod))-4], false},
		"wrong sum":              {zip(onePod)[:len(zip(onePod))-8] + "12345678", false},
		"plain text behind":      {zip(onePod) + "more", false},
		"cut in a second header": {zip(onePod) + zip("")[:4], false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := onLoopback(t, header("Content-Encoding", "gzip", answer(200, jsonType, c.body)))
			got, err := pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
			if !c.ok {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "web", got.Name)
		})
	}
}

func TestRedirects(t *testing.T) {
	var stolen atomic.Value
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen.Store(r.Header.Get("Authorization") + "?")
	}))
	defer stranger.Close()
	target := ""
	code := http.StatusFound
	cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/arrived") {
			require.Equal(t, "Bearer "+secret, r.Header.Get("Authorization"))
			answer(200, jsonType, onePod)(w, r)
			return
		}
		http.Redirect(w, r, target, code)
	})
	cfg.BearerToken = apiclient.NewSecret(secret)
	r := pods(t, cfg)
	get := func() error { return must.Err(r.Get(t.Context(), web, metav1.GetOptions{})) }
	refused := func(err error) {
		t.Helper()
		var typed *apiclient.RedirectError
		require.ErrorAs(t, err, &typed)
		require.Contains(t, err.Error(), "which the client does not follow")
		require.NotContains(t, err.Error(), secret)
	}

	target = "/arrived"
	require.NoError(t, get(), "a redirect within the server is followed")

	for _, code = range []int{301, 302, 303, 307, 308} {
		target = stranger.URL + "/x?token=" + secret
		refused(get())
		target = "https" + strings.TrimPrefix(cfg.Host, "http") + "/arrived"
		refused(get())
		target = "http://joe:" + secret + "@" + strings.TrimPrefix(stranger.URL, "http://")
		refused(get())
		target = "/arrived"
		refused(r.Delete(t.Context(), web, metav1.DeleteOptions{}))
		_, err := r.Patch(t.Context(), web, apiclient.Patch{Data: []byte("{}")}, apiclient.PatchOptions{})
		refused(err)
	}
	target = "/again"
	refused(get())
	require.Nil(t, stolen.Load(), "no request reached the other server")
}

func TestARedirectThatNamesTheDefaultPortStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/arrived" {
				answer(200, jsonType, onePod)(w, r)
				return
			}
			http.Redirect(w, r, "http://SERVER.memory:80/arrived", http.StatusFound)
		})
		must.Get(apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Get(t.Context(), web, metav1.GetOptions{}))(t)
	})
}

func TestTokenFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		put := func(token string) { require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600)) }
		put("one")
		got, code := "", 200
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			answer(code, jsonType, onePod)(w, r)
		})
		cfg.BearerTokenFile = path
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		sent := func() string {
			_, err := r.Get(t.Context(), web, metav1.GetOptions{})
			require.Equal(t, code == 401, apierrors.IsUnauthorized(err))
			return got
		}
		require.Equal(t, "Bearer one", sent())
		put("second")
		<-time.After(5*time.Second - 1)
		require.Equal(t, "Bearer one", sent(), "the last check was less than five seconds ago")
		<-time.After(1)
		require.Equal(t, "Bearer second", sent())
		put("two")
		<-time.After(5 * time.Second)
		require.Equal(t, "Bearer two", sent())

		require.NoError(t, os.Remove(path))
		<-time.After(time.Hour)
		require.Equal(t, "Bearer two", sent(), "the last token stays in use")
		put("")
		<-time.After(time.Hour)
		require.Equal(t, "Bearer two", sent())

		put("three")
		require.Equal(t, "Bearer two", sent())
		code = 401
		require.Equal(t, "Bearer three", sent(), "after a 401, the request is sent again with the token of the file")
	})
}

func TestATokenIsUsedUntilItsFileExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		got := ""
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			answer(200, jsonType, onePod)(w, r)
		})
		cfg.BearerToken, cfg.BearerTokenFile = apiclient.NewSecret("first"), path
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		get := func() string {
			must.Get(r.Get(t.Context(), web, metav1.GetOptions{}))(t)
			return got
		}
		require.Equal(t, "Bearer first", get())
		require.NoError(t, os.WriteFile(path, []byte("second"), 0o600))
		<-time.After(time.Minute)
		require.Equal(t, "Bearer second", get())
	})
}

func TestAProxyIsUsed(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		answer(200, jsonType, onePod)(w, r)
	}))
	defer server.Close()
	must.Get(pods(t, apiclient.Config{Host: "http://far.example", ProxyURL: proxy(server.URL)}).Get(t.Context(), web, metav1.GetOptions{}))(t)
	require.Equal(t, "http://far.example/api/v1/namespaces/default/pods/web", asked)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var conns atomic.Int32
	code := 200
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(code, jsonType, onePod)(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	r := pods(t, apiclient.Config{Host: server.URL})
	for range 3 {
		must.Get(r.Get(t.Context(), web, metav1.GetOptions{}))(t)
		require.NoError(t, r.Delete(t.Context(), web, metav1.DeleteOptions{}))
	}
	code = 404
	for range 3 {
		require.Error(t, must.Err(r.Get(t.Context(), web, metav1.GetOptions{})))
	}
	require.EqualValues(t, 1, conns.Load())
	code = 200
	r.Client().CloseIdleConnections()
	require.NoError(t, r.Delete(t.Context(), web, metav1.DeleteOptions{}))
	require.EqualValues(t, 2, conns.Load())
}

// mortal is a connection that can die like a cable: writes are lost, and nothing arrives any more.
type mortal struct {
	net.Conn
	dead   <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (m *mortal) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	select {
	case <-m.dead:
		<-m.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (m *mortal) Write(p []byte) (int, error) {
	select {
	case <-m.dead:
		return len(p), nil
	default:
		return m.Conn.Write(p)
	}
}

func (m *mortal) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Conn.Close()
}

func TestADeadConnectionEndsItsWatches(t *testing.T) {
	withServer(t, testserver.Options{HTTP2: true, BookmarkInterval: -1}, func(t *testing.T, s *testserver.Server, _ *apiclient.Client) {
		dead := make(chan struct{})
		cfg := to(s)
		cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := s.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return &mortal{Conn: c, dead: dead, closed: make(chan struct{})}, nil
		}
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		start := time.Now()
		failed := make(chan error)
		go func() {
			var last error
			for _, err := range r.Watch(t.Context(), api.Options[*pod]{}) {
				last = err
			}
			failed <- last
		}()
		<-time.After(10 * time.Minute)
		synctest.Wait()
		require.Len(t, s.Watches(), 1, "a silent watch whose pings are answered stays open")
		close(dead)
		require.ErrorContains(t, <-failed, "watch pods: ")
		silent := time.Since(start) - 10*time.Minute
		require.LessOrEqual(t, silent, 45*time.Second)
	})
}
