package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/livepage/history"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	maps    = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	secrets = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
)

// world is a recorded minute: what an informer had cached at each of its moments, by name.
type world struct {
	file    *bytes.Buffer
	moments []moment
}

type moment struct {
	at       time.Time
	versions map[string]string
	version  string // of the informer
}

// minute records a ConfigMap that changes each second, a Secret, a watch that breaks, and a request that is refused.
func minute(t *testing.T, o recording.Options) *world {
	w := &world{file: &bytes.Buffer{}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := testserver.New(testserver.Options{})
		r := must.Get(recording.New(w.file, o))(t)
		writing, stop := context.WithCancel(context.WithoutCancel(ctx))
		var running, written sync.WaitGroup
		written.Go(func() { require.NoError(t, r.Run(writing)) })
		running.Go(func() { _ = server.Run(ctx) })
		must.Get(server.Create(maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "shop"}}))(t)
		_, err := server.Create(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop"}, Data: map[string][]byte{"p": []byte("a-password-of-the-test")}})
		require.NoError(t, err)
		client, err := apiclient.New(apiclient.Config{
			Host: server.URL(), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return server.Dial(ctx) }, WrapTransport: r.Wrap,
		})
		require.NoError(t, err)
		i := informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, maps, ""), informer.Options[*corev1.ConfigMap]{})
		s := informer.New(apiclient.NewTyped[*corev1.Secret](client, secrets, "shop"), informer.Options[*corev1.Secret]{})
		running.Go(func() { _ = i.Run(ctx) })
		running.Go(func() { _ = s.Run(ctx) })
		refused := server.Inject(faults.Fault{Match: faults.Match{Resource: "nodes"}, Effect: faults.Fail{Code: 403}})
		_, err = apiclient.NewTyped[*corev1.Node](client, api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}, "").List(ctx, api.Options[*corev1.Node]{}, nil)
		require.Error(t, err)
		refused.Remove()
		for n := range 60 {
			<-time.After(time.Second)
			switch {
			case n == 30:
				require.NoError(t, server.Delete(maps, api.Key{Namespace: "shop", Name: "first"}))
				server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
			case n%3 == 0:
				_, err = server.Create(maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", n), Namespace: "shop"}, Data: map[string]string{"n": "0"}})
			default:
				_, err = server.Update(maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", n-n%3), Namespace: "shop"}, Data: map[string]string{"n": fmt.Sprint(n)}})
			}
			if n != 31 && n != 32 { // m30 does not exist
				require.NoError(t, err)
			}
			<-time.After(time.Millisecond)
			synctest.Wait()
			versions := map[string]string{}
			for key, o := range i.Snapshot().All() {
				versions[api.FormatKey(key)] = o.ResourceVersion
			}
			w.moments = append(w.moments, moment{time.Now(), versions, i.Status().ResourceVersion})
		}
		<-time.After(time.Millisecond) // the watches end after the last moment
		cancel()
		running.Wait()
		stop()
		written.Wait()
	})
	return w
}

// open returns the page of the first n bytes.
func (w *world) open(t *testing.T, n int) *history.Page {
	t.Helper()
	r := must.Get(recording.NewReader(bytes.NewReader(w.file.Bytes()), int64(n)))(t)
	return must.Get(history.New(t.Context(), r, history.Options{Name: "minute.rec"}))(t)
}

// get asks the page as a browser on this machine does.
func get(t *testing.T, p http.Handler, code int, path string, into any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	r.RemoteAddr = "127.0.0.1:4711"
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	require.Equal(t, code, w.Code, "%s: %s", path, w.Body)
	if into != nil {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), into))
	}
}

type shown struct {
	Changes int
	Second  struct{ Events, Changes, Objects int }
	Total   struct{ Events, Changes, Requests, Failed, Objects int }
	Scopes  []struct {
		Name, Activity, Ended, Version    string
		Code, Objects, Events, Watches    int
		Lists, WatchLists, Failed, Second int
		Synced, Started                   bool
	}
	Latest []struct{ Type, Resource, Key, Version string }
	Points []struct{ Events, Changes, Objects float64 }
}

// TestMoments compares the page with what the recorded informer had cached, forwards and backwards.
func TestMoments(t *testing.T) {
	w := minute(t, recording.Options{})
	p := w.open(t, w.file.Len())
	check := func(m moment) {
		var s shown
		get(t, p, 200, fmt.Sprint("/state?at=", m.at.UnixMicro()), &s)
		require.Equal(t, "configmaps", s.Scopes[0].Name)
		require.Equal(t, len(m.versions), s.Scopes[0].Objects)
		require.Equal(t, m.version, s.Scopes[0].Version)
		if s.Scopes[0].Activity != "watching" { // between two watches
			require.Contains(t, []string{"broken", "closed"}, s.Scopes[0].Ended)
		}
		require.True(t, s.Scopes[0].Synced)
		require.Equal(t, "nodes", s.Scopes[1].Name)
		require.Equal(t, 403, s.Scopes[1].Code)
		require.Equal(t, "secrets in shop", s.Scopes[2].Name)
		require.Equal(t, 1, s.Total.Failed)
		var found []struct {
			Informer, Key string
			Gone          bool
		}
		get(t, p, 200, fmt.Sprint("/keys?q=configmaps&at=", m.at.UnixMicro()), &found)
		for _, f := range found {
			require.Equal(t, m.versions[f.Key] == "", f.Gone, f.Key)
		}
		for key, version := range m.versions {
			var o struct {
				Cached   bool
				Versions []struct {
					Type, Version string
					Object        map[string]any
				}
			}
			get(t, p, 200, "/object?"+url.Values{"informer": {"configmaps"}, "key": {key}, "at": {fmt.Sprint(m.at.UnixMicro())}}.Encode(), &o)
			require.True(t, o.Cached)
			require.Equal(t, version, o.Versions[len(o.Versions)-1].Version)
		}
	}
	for _, m := range w.moments {
		check(m)
	}
	check(w.moments[10])
	var s shown
	get(t, p, 200, fmt.Sprint("/state?at=", w.moments[20].at.UnixMicro()), &s)
	require.Equal(t, 1, s.Second.Changes)
	require.Equal(t, 1, s.Second.Events)
	require.Equal(t, "configmaps", s.Latest[0].Resource)
	require.Equal(t, 1.0, s.Points[len(s.Points)-1].Changes, "the rate of a second, although a part of the chart is shorter")
	changed := 0.0
	for _, x := range s.Points {
		changed += x.Changes
	}
	require.InDelta(t, 23.0/0.6, changed, 5) // a change each second, and three of the first lists, in parts of 0.6 s
}

// TestStep goes through all changes, and through those of an object, and back.
func TestStep(t *testing.T) {
	w := minute(t, recording.Options{})
	p := w.open(t, w.file.Len())
	first, _ := p.Span()
	steps := func(by, rest string, from int64) (all []int64) {
		for {
			var to struct{ At int64 }
			get(t, p, 200, fmt.Sprintf("/step?at=%d&by=%s%s", from, by, rest), &to)
			if to.At == from {
				return all
			}
			from = to.At
			all = append(all, from)
		}
	}
	all := steps("1", "", first.UnixMicro())
	require.GreaterOrEqual(t, len(all), 58)
	back := steps("-1", "", all[len(all)-1])
	require.Len(t, back, len(all)) // the last one is the beginning
	object := "&informer=configmaps&key=shop/m3"
	one := steps("1", object, first.UnixMicro())
	require.Len(t, one, 3)
	require.Subset(t, all, one)
	require.Equal(t, []int64{one[1], one[0], first.UnixMicro()}, steps("-1", object, one[2]))
	get(t, p, 404, "/step?at=1&by=1&informer=configmaps&key=shop/none", nil)
}

// TestOneObject shows the states with their changes, and says how many are outside.
func TestOneObject(t *testing.T) {
	w := minute(t, recording.Options{})
	p := w.open(t, w.file.Len())
	var o struct {
		Cached         bool
		Earlier, Later int
		Versions       []struct {
			Type   string
			Object map[string]any
		}
	}
	get(t, p, 200, "/object?informer=configmaps&key=shop/first", &o)
	require.False(t, o.Cached)
	require.Equal(t, "Listed", o.Versions[0].Type)
	require.Equal(t, "Deleted", o.Versions[1].Type)
	get(t, p, 200, fmt.Sprint("/object?informer=configmaps&key=shop/m3&at=", w.moments[4].at.UnixMicro()), &o)
	require.True(t, o.Cached)
	require.Equal(t, 1, o.Later)
	require.Equal(t, "4", o.Versions[1].Object["data"].(map[string]any)["n"])
	get(t, p, 404, "/object?informer=configmaps&key=shop/none", nil)
	get(t, p, 404, "/object?informer=none&key=shop/m3", nil)
	get(t, p, 400, "/object?informer=configmaps&key=shop/m3&at=noon", nil)
	get(t, p, 400, "/state?at=noon", nil)
	get(t, p, 400, "/keys?at=noon", nil)
	get(t, p, 400, "/step?at=noon", nil)
}

// TestSecretsAreHidden requires that no answer has a value of a Secret, even if the recording had it.
func TestSecretsAreHidden(t *testing.T) {
	w := minute(t, recording.Options{})
	p := w.open(t, w.file.Len())
	for _, path := range []string{"/object?informer=secrets&key=shop/s", "/state", "/keys", "/recording"} {
		var raw json.RawMessage
		get(t, p, 200, path, &raw)
		require.NotContains(t, string(raw), "cmVkYWN0ZWQ6") // the recorder redacts too, and the page does not show it
		require.NotContains(t, string(raw), "a-password")
	}
}

// TestDamagedFiles cuts a recording everywhere. Each page has the beginning, and says what is missing.
func TestDamagedFiles(t *testing.T) {
	w := minute(t, recording.Options{})
	whole := 0
	for n := 2000; n < w.file.Len(); n += 997 {
		p := w.open(t, n)
		var file struct {
			Ended    bool
			Problems []struct{ Text string }
			Changes  int
		}
		get(t, p, 200, "/recording", &file)
		require.False(t, file.Ended)
		require.GreaterOrEqual(t, file.Changes, whole)
		whole = file.Changes
		get(t, p, 200, "/state", nil)
		if len(file.Problems) > 0 {
			require.Contains(t, file.Problems[0].Text, "bytes ")
		}
	}
	require.Greater(t, whole, 20)
	r := must.Get(recording.NewReader(bytes.NewReader(w.file.Bytes()), 16))(t)
	require.ErrorIs(t, must.Err(history.New(t.Context(), r, history.Options{})), history.ErrEmpty)
}

// TestOtherMachinesAreRefused has the checks of the live page.
func TestOtherMachinesAreRefused(t *testing.T) {
	w := minute(t, recording.Options{})
	p := w.open(t, w.file.Len())
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.RemoteAddr = "192.0.2.1:4711" },
		func(r *http.Request) { r.Host = "evil.example.com"; r.Header.Set("Accept-Language", "en") }, // as a browser
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/state", nil)
		r.RemoteAddr = "127.0.0.1:4711"
		change(r)
		answer := httptest.NewRecorder()
		p.ServeHTTP(answer, r)
		require.Equal(t, http.StatusForbidden, answer.Code)
	}
	script := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/page.js", nil)
	r.RemoteAddr = "127.0.0.1:4711"
	p.ServeHTTP(script, r)
	require.Contains(t, script.Body.String(), "The page of a recording.")
	require.Contains(t, script.Header().Get("Content-Security-Policy"), "default-src 'none'")
}
