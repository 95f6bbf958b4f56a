package recording

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestARingOnABrokenDisk cannot begin its second segment. Requests continue, Run returns the error, and no segment
// stays, neither open nor in the folder.
func TestARingOnABrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ring := must.Get(NewRing(RingOptions{Dir: dir, MaxAge: 10 * time.Second}))(t)
		require.NoError(t, os.WriteFile(segmentName(dir, 2), nil, 0o600)) // creating it fails
		ended := make(chan error, 1)
		go func() { ended <- ring.Run(t.Context()) }()
		rt := ring.Wrap(answers(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"items":[]}`))}, nil
		}))
		<-time.After(2 * time.Second)
		for range 3 {
			req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil))(t)
			resp := must.Get(rt.RoundTrip(req))(t)
			must.Get(io.ReadAll(resp.Body))(t)
		}
		require.ErrorIs(t, <-ended, os.ErrExist)
		require.NoFileExists(t, segmentName(dir, 1))
		require.NoFileExists(t, filepath.Join(dir, "segment-base"))
		require.ErrorIs(t, must.Err(ring.ring.base.file.Stat()), os.ErrClosed)
		require.EqualError(t, must.Err(ring.Dump()), "recording: dump: the ring has ended")
	})
}

// TestARingForgetsSelectors lists with a new selector every second, and keeps one watch open.
func TestARingForgetsSelectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const age = 10 * time.Second
		r := must.Get(newRingSink(RingOptions{Dir: t.TempDir(), MaxAge: age, MaxBytes: 1 << 30}, &atomic.Uint64{}, &atomic.Uint64{}))(t)
		send := func(id uint64, selector string, frames string) {
			s := &Stream{ID: id, At: time.Now(), Version: "v1", Plural: "pods", Code: 200, ContentType: typeJSON, Options: map[string]string{"labelSelector": selector}}
			if s.Watch = selector == "watched"; s.Watch {
				s.Options["sendInitialEvents"] = "true"
			}
			r.opened(s)
			r.data(id, time.Now(), []byte(frames))
		}
		const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","resourceVersion":"7"}}`
		send(1, "watched", `{"type":"ADDED","object":`+object+`}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}
`)
		for n := range uint64(200) {
			send(n+2, fmt.Sprint("selector=", n), `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`+object+`]}`)
			r.ended(Ended, n+2, time.Now())
			require.NoError(t, r.flush())
			<-time.After(time.Second)
			require.LessOrEqual(t, len(r.base.loader.scopes), 25)
			require.LessOrEqual(t, len(r.base.places), 25)
			require.LessOrEqual(t, len(r.uses), 40)
		}
		require.Greater(t, len(r.base.loader.scopes), 5)
		watched := scope{version: "v1", plural: "pods", labels: "watched", contentType: typeJSON}
		require.Len(t, r.base.loader.scopes[watched].objects, 1)
		require.NoError(t, r.close())
	})
}

// TestForgetsAResource forgets the last scope of a resource, and then learns it again.
func TestForgetsAResource(t *testing.T) {
	b := must.Get(newBase(t.TempDir()))(t)
	s := &Stream{ID: 1, Version: "v1", Plural: "pods", Code: 200, ContentType: typeJSON}
	for range 2 {
		b.loader.record(Record{Kind: Opened, Stream: s})
		b.loader.record(Record{Kind: Data, Stream: s, Data: []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`)})
		b.loader.record(Record{Kind: Ended, Stream: s})
		delete(b.loader.streams, s.ID)
		require.Len(t, b.loader.order, 1)
		require.Equal(t, "Pod", b.loader.order[0].resource.Kind)
		b.keep(func(*Stream) bool { return false })
		require.Empty(t, b.loader.order)
		require.Empty(t, b.loader.kinds)
		require.Empty(t, b.loader.scopes)
	}
	require.NoError(t, b.close())
}

// TestGarbageIsCollected changes half of the objects until most of the file is garbage. Afterwards it has nothing else
// than the newest states, and all of them are found.
func TestGarbageIsCollected(t *testing.T) {
	b := must.Get(newBase(t.TempDir()))(t)
	text := strings.Repeat("x", 60_000)
	version := 0
	pod := func(n int) string {
		version++
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%d","namespace":"shop","uid":"%d","resourceVersion":"%d","annotations":{"text":%q}}}`,
			n, n, version, text[:len(text)-n])
	}
	newest := map[string]int64{}
	var items []string
	for n := range 300 {
		items = append(items, pod(n))
	}
	list := &Stream{ID: 1, Version: "v1", Plural: "pods", Code: 200, ContentType: typeJSON}
	b.loader.record(Record{Kind: Opened, Stream: list})
	b.loader.record(Record{Kind: Data, Stream: list, Data: []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"300"},"items":[` + strings.Join(items, ",") + `]}`)})
	b.loader.record(Record{Kind: Ended, Stream: list})
	watch := &Stream{ID: 2, Version: "v1", Plural: "pods", Code: 200, ContentType: typeJSON, Watch: true}
	b.loader.record(Record{Kind: Opened, Stream: watch})
	for round := range 3 {
		for n := range 150 {
			b.loader.record(Record{Kind: Data, Stream: watch, Data: []byte(`{"type":"MODIFIED","object":` + pod((n*7+round)%150*2) + "}\n")})
		}
	}
	b.write()
	require.NoError(t, b.err)
	before := b.size
	read := func() map[string]string {
		all := map[string]string{}
		b.each(func(_ *scopeState, p *codec.Packed) {
			object := must.Get(b.bytes(nil, b.places[number(p)]))(t)
			require.Contains(t, string(object), fmt.Sprintf("%q", p.GetResourceVersion()))
			all[p.GetName()] = string(object)
			newest[p.GetName()] = int64(len(object))
		})
		return all
	}
	want := read()
	require.Len(t, want, 300)
	require.NoError(t, b.collect())
	require.Equal(t, want, read())
	size := int64(0)
	for _, n := range newest {
		size += n
	}
	require.Equal(t, size, b.size)
	require.Less(t, size, before/2)
	info := must.Get(b.file.Stat())(t)
	require.Equal(t, size, info.Size())
	require.NoError(t, b.collect(), "again, without garbage")
	require.Equal(t, size, b.size)
	require.NoError(t, b.close())
}

// TestStreamOf finds the resource behind every path of a server's URL, and takes no single object for a list.
func TestStreamOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/secrets":                                  "secrets",
		"/apis/api/v1/secrets":                             "secrets",
		"/proxy/api/api/v1/namespaces/apis/secrets":        "secrets",
		"/apis/apis/apps/v1/deployments":                   "deployments.apps",
		"/k8s/apis/apps/v1/namespaces/api/deployments":     "deployments.apps",
		"/api/v1/namespaces":                               "namespaces",
		"/api/v1/namespaces/api/secrets/web":               "",
		"/api/v1/namespaces/apis/pods/web/log":             "",
		"/api/v1/namespaces/apis/status":                   "",
		"/apis/apps/v1/namespaces/apis/deployments/web/v1": "",
		"/api/v1": "",
		"/apis":   "",
	} {
		req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, "https://server"+path, nil))(t)
		s, ok := streamOf(req)
		require.Equal(t, want != "", ok, path)
		if ok {
			require.Equal(t, want, s.Resource().String(), path)
		}
	}
}

// TestARingWaitsForTheNextPage gets the pages of a list with pauses, while a watch of another resource goes on. No
// segment begins between the pages. A client that never requests a next page delays a segment for a minute at most.
func TestARingWaitsForTheNextPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(newRingSink(RingOptions{Dir: t.TempDir(), MaxAge: 10 * time.Second, MaxBytes: 1 << 30}, &atomic.Uint64{}, &atomic.Uint64{}))(t)
		stream := func(id uint64, plural string, watch bool, options map[string]string) {
			r.opened(&Stream{ID: id, At: time.Now(), Version: "v1", Plural: plural, Watch: watch, Code: 200, ContentType: typeJSON, Options: options})
		}
		event := func() {
			<-time.After(2 * time.Second)
			r.data(1, time.Now(), []byte(`{"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}`+"\n"))
		}
		stream(1, "nodes", true, nil)
		page := func(id uint64, options map[string]string) {
			stream(id, "pods", false, options)
			r.data(id, time.Now(), []byte(`{}`))
			r.ended(Ended, id, time.Now())
		}
		page(2, map[string]string{"limit": "1"})
		before := len(r.segments)
		event()
		page(3, map[string]string{"limit": "1", "continue": "true"})
		event()
		require.Len(t, r.segments, before)
		stream(4, "pods", true, nil) // after the last page
		event()
		require.Len(t, r.segments, before+1)
		require.True(t, r.segments[0].whole())
		page(5, map[string]string{"limit": "1"})
		before = r.next
		for range 29 {
			event()
		}
		require.Equal(t, before, r.next)
		for range 3 {
			event()
		}
		require.Greater(t, r.next, before)
		require.NoError(t, r.close())
	})
}
