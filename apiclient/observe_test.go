package apiclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// collect returns a hook that keeps the requests.
func collect(into *[]apiclient.Request) func(apiclient.Request) {
	var mu sync.Mutex
	return func(r apiclient.Request) {
		mu.Lock()
		defer mu.Unlock()
		*into = append(*into, r)
	}
}

func TestRequestsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-time.After(2 * time.Second)
			flushed(w, jsonType, onePod[:10])
			<-time.After(3 * time.Second)
			_, _ = io.WriteString(w, onePod[10:])
		})
		var seen []apiclient.Request
		cfg.OnRequest = collect(&seen)
		require.NoError(t, updateVerb.call(t.Context(), newClient(t, cfg)))
		require.Len(t, seen, 1)
		require.Positive(t, seen[0].Sent)
		seen[0].Sent = 0
		require.Equal(t, apiclient.Request{
			Verb: "update", Method: "PUT", Host: "server.memory", Path: "/api/v1/namespaces/default/pods/web", Resource: podResource,
			Attempt: 1, Code: 200, Protocol: "HTTP/1.1", Received: int64(len(onePod)), Head: 2 * time.Second, Total: 5 * time.Second,
		}, seen[0])
	})
}

func TestEachAttemptIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{lost(io.EOF), later(429, "1", "busy"), later(503, "1", ""), {code: 404, body: status(404, "NotFound", "gone")}}}
		var seen []apiclient.Request
		c := newClient(t, apiclient.Config{Host: "http://h", Transport: s, OnRequest: collect(&seen)})
		require.Error(t, getVerb.call(t.Context(), c))
		require.Len(t, seen, 4)
		for i, want := range []struct {
			code     int
			received int
			is       func(error) bool
		}{
			{0, 0, func(err error) bool { return isError(err, io.EOF) }},
			{429, 4, apierrors.IsTooManyRequests},
			{503, 0, apierrors.IsServiceUnavailable},
			{404, len(s.steps[3].body), apierrors.IsNotFound},
		} {
			require.Equal(t, i+1, seen[i].Attempt)
			require.Equal(t, want.code, seen[i].Code)
			require.EqualValues(t, want.received, seen[i].Received)
			require.True(t, want.is(seen[i].Err), "%v", seen[i].Err)
			require.NotContains(t, seen[i].Err.Error(), "sent", "only the caller's error has the number of attempts")
		}
	})
}

func TestEveryVerbIsNamed(t *testing.T) {
	want := map[string]string{"document": "get", "stream": "get", "evict": "create"}
	subresource := map[string]string{"stream": "log", "evict": "eviction"}
	for _, v := range all {
		t.Run(v.name, func(t *testing.T) {
			var seen []apiclient.Request
			c := newClient(t, apiclient.Config{Host: "http://h:81", Transport: &script{steps: []step{{code: 404}}}, OnRequest: collect(&seen)})
			require.Error(t, v.call(t.Context(), c))
			require.Len(t, seen, 1)
			verb, ok := want[v.name]
			if !ok {
				verb = v.name
			}
			require.Equal(t, verb, seen[0].Verb)
			require.Equal(t, subresource[v.name], seen[0].Subresource)
			require.Equal(t, "h:81", seen[0].Host)
			require.Equal(t, v.name == "document", seen[0].Resource == api.Resource{})
		})
	}
}

func TestWatchesAreObservedAtTheirEnd(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		leave   bool
		is      error
	}{
		"the server ends it": {func(w http.ResponseWriter, _ *http.Request) {
			flushed(w, jsonType, frame(1))
			<-time.After(time.Minute)
		}, false, nil},
		"it breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			flushed(w, jsonType, frame(1))
			<-time.After(time.Minute)
			panic(http.ErrAbortHandler)
		}, false, io.ErrUnexpectedEOF},
		"the caller leaves": {func(w http.ResponseWriter, r *http.Request) {
			<-time.After(time.Minute)
			flushed(w, jsonType, frame(1))
			hang(r)
		}, true, nil},
		"the caller gives up": {func(w http.ResponseWriter, r *http.Request) {
			flushed(w, jsonType, frame(1))
			hang(r)
		}, false, context.DeadlineExceeded},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			cfg := inMemory(t, c.handler)
			var seen []apiclient.Request
			cfg.OnRequest = collect(&seen)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if c.is == nil || c.is == io.ErrUnexpectedEOF {
				ctx = t.Context()
			}
			defer cancel()
			for range apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Watch(ctx, api.Options[*pod]{}) {
				require.Empty(t, seen)
				if c.leave {
					break
				}
			}
			require.Len(t, seen, 1)
			require.Equal(t, "watch", seen[0].Verb)
			require.Equal(t, time.Minute, seen[0].Total)
			require.EqualValues(t, len(frame(1)), seen[0].Received)
			if c.is == nil {
				require.NoError(t, seen[0].Err)
			} else {
				require.ErrorIs(t, seen[0].Err, c.is)
			}
		})
	}
}

// TestFailuresTakeTime has a connection that fails late, and a page that never ends.
func TestFailuresTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []apiclient.Request
		transport := roundTrip(func(*http.Request) (*http.Response, error) {
			<-time.After(2 * time.Second)
			return nil, http.ErrSchemeMismatch
		})
		require.Error(t, getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: transport, OnRequest: collect(&seen)})))
		cfg := inMemory(t, states["in a page"])
		cfg.OnRequest = collect(&seen)
		require.True(t, isContentType(getVerb.call(t.Context(), newClient(t, cfg))))
		require.Len(t, seen, 2)
		require.Equal(t, 2*time.Second, seen[0].Head)
		require.Zero(t, seen[1].Head)
		require.Equal(t, 10*time.Second, seen[1].Total)
		require.NoError(t, seen[1].Err, "the client ended the watch")
	})
}

func TestBytesAreCountedBeforeDecompression(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, onePod+strings.Repeat(" ", 10_000))
	require.NoError(t, z.Close())
	s := &script{steps: []step{{code: 200, header: map[string]string{"Content-Encoding": "gzip"}, body: zipped.String()}}}
	var seen []apiclient.Request
	require.NoError(t, getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s, OnRequest: collect(&seen)})))
	require.EqualValues(t, zipped.Len(), seen[0].Received)
}

func TestAWatchOverWebSocketIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(testserver.Options{})
		fixture.Start(t, server.Run)
		ctx, cfg := t.Context(), to(server)
		var seen []apiclient.Request
		cfg.OnRequest = collect(&seen)
		pods := apiclient.NewTyped[*pod](newClient(t, cfg), podResource, "default")
		must.Get(pods.Create(ctx, &pod{Metadata: Metadata{Name: "web"}}, metav1.CreateOptions{}))(t)
		for event, err := range websocket.Watch(pods).Watch(ctx, api.Options[*pod]{}) {
			require.NoError(t, err)
			require.Equal(t, "web", event.Object.Name)
			break
		}
		missing := apiclient.NewPartial[*pod](pods.Client(), api.Resource{Version: "v1", Kind: "Mill", Plural: "mills"}, "")
		for _, err := range websocket.Watch(missing).Watch(ctx, api.Options[*pod]{}) {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
		require.Len(t, seen, 3)
		require.Equal(t, "WebSocket", seen[1].Protocol)
		require.Equal(t, http.StatusSwitchingProtocols, seen[1].Code)
		require.Positive(t, seen[1].Received)
		require.NoError(t, seen[1].Err)
		require.Equal(t, http.StatusNotFound, seen[2].Code)
		require.True(t, apierrors.IsNotFound(seen[2].Err))
	})
}

// TestOneHookACall closes answers twice, and on another goroutine.
func TestOneHookACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			flushed(w, "text/plain", "half")
			hang(r)
		})
		var seen []apiclient.Request
		cfg.OnRequest = collect(&seen)
		require.True(t, apierrors.IsInternalError(getVerb.call(t.Context(), newClient(t, cfg))))
		require.Len(t, seen, 1)
		require.True(t, apierrors.IsInternalError(seen[0].Err), "%v", seen[0].Err)
		require.Equal(t, 10*time.Second, seen[0].Total)
	})
}

// TestObservedErrorsQuoteNoCredential has a server that echoes the token in a trailer, which net/http quotes.
func TestObservedErrorsQuoteNoCredential(t *testing.T) {
	cfg := onLoopback(t, raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"+secret+"\r\n\r\n"))
	cfg.BearerToken = apiclient.NewSecret(secret)
	var seen []apiclient.Request
	cfg.OnRequest = collect(&seen)
	require.NotContains(t, getVerb.call(t.Context(), newClient(t, cfg)).Error(), secret)
	require.Len(t, seen, 1)
	require.ErrorContains(t, seen[0].Err, "REDACTED")
	require.NotContains(t, seen[0].Err.Error(), secret)
}

// TestNoHookCostsNothing compares the allocations of a request with and without a hook.
func TestNoHookCostsNothing(t *testing.T) {
	// Of a hundred clients, about one needs two allocations more for each request.
	allocations := func(hook func(apiclient.Request)) float64 {
		fewest := math.Inf(1)
		for range 8 {
			c := newClient(t, apiclient.Config{Host: "http://h", Transport: canned(onePod), OnRequest: hook})
			r := apiclient.NewPartial[*pod](c, podResource, "")
			fewest = min(fewest, testing.AllocsPerRun(100, func() {
				if _, err := r.Get(t.Context(), web, metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return fewest
	}
	require.Equal(t, 2.0, allocations(func(apiclient.Request) {})-allocations(nil))
}

// warned makes a client. All its answers have these Warning headers.
func warned(t *testing.T, handle func(apiclient.Warning), code int, headers ...string) *apiclient.Client {
	t.Helper()
	transport := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {jsonType}, "Warning": headers},
			Body: io.NopCloser(strings.NewReader(onePod)),
		}, nil
	})
	return newClient(t, apiclient.Config{Host: "http://h", Transport: transport, OnWarning: handle, BearerToken: apiclient.NewSecret(secret)})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWarnings(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		headers []string
		want    []apiclient.Warning
	}{
		"one":            {[]string{`299 - "v1beta1 is deprecated"`}, []apiclient.Warning{{299, "-", "v1beta1 is deprecated"}}},
		"two":            {[]string{`299 - "a"`, `299 - "b"`}, []apiclient.Warning{{299, "-", "a"}, {299, "-", "b"}}},
		"two in one":     {[]string{`299 - "a, \"b\"", 299 who "c\\d"`}, []apiclient.Warning{{299, "-", `a, "b"`}, {299, "who", `c\d`}}},
		"twice":          {[]string{`299 - "a"`, `299 - "a", 299 - "a"`}, []apiclient.Warning{{299, "-", "a"}}},
		"dated":          {[]string{`299 - "a" "Sat, 01 Jan 2000 00:00:00 GMT"`}, []apiclient.Warning{{299, "-", "a"}}},
		"bad and good":   {[]string{`299`, `x - "a"`, `299 - a`, `299 - "a`, ``, `29 - "a"`, `299 - "good"`}, []apiclient.Warning{{299, "-", "good"}}},
		"control":        {[]string{"299 - \"a\x1b[31mb\"", `299 - "good"`}, []apiclient.Warning{{299, "-", "good"}}},
		"not UTF-8":      {[]string{"299 - \"a\xff\"", `299 - "good"`}, []apiclient.Warning{{299, "-", "good"}}},
		"turned round":   {[]string{"299 - \"a\u202eb\u2028c\"", `299 - "good"`}, []apiclient.Warning{{299, "-", "ab c"}, {299, "-", "good"}}},
		"empty":          {[]string{`299 - ""`, `299 - "  "`}, nil},
		"long":           {[]string{`299 - "` + long + `"`}, []apiclient.Warning{{299, "-", long[:1021] + "…"}}},
		"the credential": {[]string{`299 - "you sent ` + secret + `"`}, []apiclient.Warning{{299, "-", "you sent REDACTED"}}},
		"another code":   {[]string{`110 cache "stale"`}, []apiclient.Warning{{110, "cache", "stale"}}},
	} {
		for _, code := range []int{200, 403} {
			t.Run(fmt.Sprint(name, "/", code), func(t *testing.T) {
				var got []apiclient.Warning
				client := warned(t, func(w apiclient.Warning) { got = append(got, w) }, code, c.headers...)
				for range 2 {
					require.Equal(t, code == 200, getVerb.call(t.Context(), client) == nil)
					require.Equal(t, c.want, got, "each text once in the life of a client")
				}
			})
		}
	}
}

// TestOldWarningsAreForgotten sends more texts than the client remembers.
func TestOldWarningsAreForgotten(t *testing.T) {
	n, got := 0, 0
	transport := roundTrip(func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {jsonType}, "Warning": {fmt.Sprintf(`299 - "%d"`, n)}}
		return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(onePod))}, nil
	})
	client := newClient(t, apiclient.Config{Host: "http://h", Transport: transport, OnWarning: func(apiclient.Warning) { got++ }})
	ask := func(from, to, want int) {
		t.Helper()
		got = 0
		for n = from; n < to; n++ {
			require.NoError(t, getVerb.call(t.Context(), client))
		}
		require.Equal(t, want, got)
	}
	ask(0, 256, 256)
	ask(0, 256, 0)
	ask(256, 266, 10)
	ask(10, 266, 0)
	ask(0, 10, 10)
	ask(10, 20, 10)
}

func TestAWarningMayCallTheClient(t *testing.T) {
	var client *apiclient.Client
	calls := 0
	client = warned(t, func(apiclient.Warning) {
		calls++
		require.NoError(t, getVerb.call(t.Context(), client))
	}, 200, `299 - "a"`)
	require.NoError(t, getVerb.call(t.Context(), client))
	require.Equal(t, 1, calls)
}
