package discovery_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// grouped is a cluster with the core group and another one, which has the given version.
func grouped(etag, version string) page {
	return aggregated(etag, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"g.example"},"versions":[`+version+`]}]}`)
}

const (
	sluices = `{"version":"v1","freshness":"Current","resources":[{"resource":"sluices","responseKind":{"kind":"Sluice"},"scope":"Namespaced","verbs":["list"],"categories":["water"]}]}`
	gates   = `{"version":"v1","freshness":"Current","resources":[{"resource":"gates","responseKind":{"kind":"Gate"},"scope":"Namespaced","verbs":["list"]}]}`
	down    = `{"version":"v1","freshness":"Stale","resources":[]}`
)

func TestMissesRefreshAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(map[string]page{"/api+": aggregatedPages["/api+"], "/apis+": grouped(`"1"`, sluices)})
		m := discovery.New(s.client(t), discovery.Options{})
		look := func(name string) error { return must.Err(m.Lookup(t.Context(), name)) }
		require.NoError(t, look("sluices"))
		require.Equal(t, []string{"/api+", "/apis+"}, s.requests(), "the first look-up reads each document once")
		require.NoError(t, look("sluices"))
		require.NoError(t, look("pods"))
		require.Empty(t, s.requests(), "a known name costs no request")

		s.set("/apis+", grouped(`"2"`, gates))
		<-time.After(10*time.Second - 1)
		require.ErrorIs(t, look("gates"), discovery.ErrUnknownResource)
		require.Empty(t, s.requests(), "the refresh interval is not over")
		<-time.After(1)
		require.NoError(t, look("gates"))
		require.Equal(t, []string{`/api+ if "core-1"`, `/apis+ if "1"`}, s.requests())
		require.ErrorIs(t, look("sluices"), discovery.ErrUnknownResource, "a removed resource is unknown")
		require.Empty(t, s.requests())

		<-time.After(time.Hour)
		require.NoError(t, look("gates"))
		require.Empty(t, s.requests(), "known resources do not expire")
		require.ErrorIs(t, look("sluices"), discovery.ErrUnknownResource)
		require.Equal(t, []string{`/api+ if "core-1"`, `/apis+ if "2"`}, s.requests())
		require.NoError(t, look("gates"), "unchanged resources are still known")
		require.NoError(t, look("pods"))
	})
}

func TestRefreshInterval(t *testing.T) {
	for name, tc := range map[string]struct {
		interval time.Duration
		want     int // reads after 5 failed look-ups, a second apart
	}{"a second": {time.Second, 5}, "two": {2 * time.Second, 3}, "none": {-1, 5}, "by default": {0, 1}} {
		fixture.Bubble(t, name, func(t *testing.T) {
			s := newServer(aggregatedPages)
			m := discovery.New(s.client(t), discovery.Options{RefreshInterval: tc.interval})
			for range 5 {
				require.ErrorIs(t, must.Err(m.ForKind(t.Context(), schema.GroupVersionKind{Kind: "Nothing"})), discovery.ErrUnknownResource)
				<-time.After(time.Second)
			}
			require.Len(t, s.requests(), 2*tc.want)
		})
	}
}

// TestRefresh finds a change of a known resource, which a look-up does not.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(map[string]page{"/api+": aggregatedPages["/api+"], "/apis+": grouped(`"1"`, sluices)})
		m := discovery.New(s.client(t), discovery.Options{})
		require.NoError(t, m.Refresh(t.Context()))
		s.set("/apis+", grouped(`"2"`, gates))
		require.NoError(t, m.Refresh(t.Context()))
		require.ErrorIs(t, must.Err(m.Lookup(t.Context(), "sluices")), discovery.ErrUnknownResource)
		s.requests()

		s.set("/apis+", status(503, "ServiceUnavailable", "not now"))
		err := m.Refresh(t.Context())
		require.EqualError(t, err, "refresh resources: get /apis: not now")
		require.True(t, apierrors.IsServiceUnavailable(err))
		require.Equal(t, "/apis", m.Failed()[0].Path)
		require.NoError(t, must.Err(m.Lookup(t.Context(), "gates")), "a failed refresh changes nothing")
		_, err = m.Lookup(t.Context(), "sluices")
		require.EqualError(t, err, "look up sluices: get /apis: not now", "the error does not say that the resource is missing")
		require.NotErrorIs(t, err, discovery.ErrUnknownResource)
		all, err := m.All(t.Context())
		require.EqualError(t, err, "list resources: get /apis: not now")
		require.Len(t, all, 5)
		require.Len(t, s.requests(), 2, "the refresh interval is not over")

		s.set("/apis+", grouped(`"2"`, gates))
		<-time.After(10 * time.Second)
		all, err = m.All(t.Context())
		require.NoError(t, err, "a document that failed is read again")
		require.Len(t, all, 5)
		require.Empty(t, m.Failed())
	})
}

// TestOneReadsForAll has many concurrent calls: before the first read, with an unknown name, and for a refresh.
func TestOneReadsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(aggregatedPages)
		s.gate = func(*http.Request) { <-time.After(time.Second) }
		m := discovery.New(s.client(t), discovery.Options{RefreshInterval: -1})
		together := func(n int, call func() error) {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { require.NoError(t, call()) })
			}
			wg.Wait()
		}
		together(100, func() error { return must.Err(m.Lookup(t.Context(), "pods")) })
		require.Len(t, s.requests(), 2)

		began := time.Now()
		together(100, func() error {
			require.ErrorIs(t, must.Err(m.Lookup(t.Context(), "podz")), discovery.ErrUnknownResource)
			return nil
		})
		require.Len(t, s.requests(), 2)
		require.Equal(t, 2*time.Second, time.Since(began))

		together(100, func() error { return m.Refresh(t.Context()) })
		require.Len(t, s.requests(), 4, "one read may have begun before the other calls; a second one serves them")
	})
}

func TestAFailureIsSharedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(map[string]page{"/api+": status(500, "InternalError", "no")})
		s.gate = func(*http.Request) { <-time.After(time.Minute) }
		m := discovery.New(s.client(t), discovery.Options{})
		began := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				require.True(t, apierrors.IsInternalError(must.Err(m.Lookup(t.Context(), "pods"))))
			})
		}
		wg.Wait()
		require.Equal(t, time.Minute, time.Since(began), "all calls share one failure")
		require.Len(t, s.requests(), 1)
		s.set("/api+", aggregatedPages["/api+"])
		require.NoError(t, must.Err(m.Lookup(t.Context(), "pods")), "every look-up reads while no resource is known")
	})
}

// TestAContextEndsOnlyItsOwnCall cancels a call that reads, and a call that waits for it.
func TestAContextEndsOnlyItsOwnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(aggregatedPages)
		open := make(chan struct{})
		s.gate = func(r *http.Request) {
			select {
			case <-open:
			case <-r.Context().Done():
			}
		}
		m := discovery.New(s.client(t), discovery.Options{})
		call := func() (stop context.CancelFunc, out chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			out = make(chan error, 1)
			go func() {
				_, err := m.Lookup(ctx, "pods")
				out <- err
			}()
			synctest.Wait()
			return cancel, out
		}
		stopReader, reader := call()
		stopWaiter, waiter := call()
		stopOther, other := call()
		defer stopOther()
		stopWaiter()
		err := <-waiter
		require.ErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, "look up pods: context canceled")
		stopReader()
		require.ErrorIs(t, <-reader, context.Canceled)
		require.Empty(t, m.Failed(), "the end of a context is not a failure of the server")
		close(open)
		require.NoError(t, <-other)
	})
}

// TestAReadingDoesNotStopOthers has a server that hangs while known names are looked up.
func TestAReadingDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(aggregatedPages)
		m := discovery.New(s.client(t), discovery.Options{})
		require.NoError(t, m.Refresh(t.Context()))
		s.gate = func(r *http.Request) { <-r.Context().Done() }
		ctx, cancel := context.WithCancel(t.Context())
		refreshed := make(chan error)
		go func() { refreshed <- m.Refresh(ctx) }()
		synctest.Wait()
		must.Get(m.Lookup(t.Context(), "po"))(t)
		cancel()
		require.ErrorIs(t, <-refreshed, context.Canceled)
	})
}

// TestAStaleGroupKeepsItsPlace has an aggregated API whose server fails and comes back.
func TestAStaleGroupKeepsItsPlace(t *testing.T) {
	const staleButKnown = `{"version":"v1","freshness":"Stale","resources":[{"resource":"gates","responseKind":{"kind":"Gate"},"scope":"Namespaced","verbs":["list"]}]}`
	synctest.Test(t, func(t *testing.T) {
		s := newServer(map[string]page{"/api+": aggregatedPages["/api+"], "/apis+": grouped(`"1"`, sluices)})
		m := discovery.New(s.client(t), discovery.Options{})
		require.NoError(t, m.Refresh(t.Context()))
		s.set("/apis+", grouped(`"2"`, down))
		for range 2 { // the second answer is 304
			err := m.Refresh(t.Context())
			require.EqualError(t, err, "discovery: documents that could not be read: 1; the first: get /apis/g.example/v1: the server behind this API does not answer")
			require.ErrorIs(t, err, discovery.ErrIncomplete)
			require.ErrorIs(t, err, discovery.ErrStale)
			found := must.Get(m.Lookup(t.Context(), "sluices"))(t)
			require.Equal(t, api.Resource{Group: "g.example", Version: "v1", Kind: "Sluice", Plural: "sluices", Namespaced: true}, found.Resource)
		}
		failed := m.Failed()
		require.Len(t, failed, 1)
		require.Equal(t, schema.GroupVersion{Group: "g.example", Version: "v1"}, failed[0].GroupVersion)
		require.Equal(t, "/apis/g.example/v1", failed[0].Path)

		all, err := m.All(t.Context())
		require.ErrorIs(t, err, discovery.ErrIncomplete)
		require.Len(t, all, 5)
		water, err := m.Category(t.Context(), "water")
		require.ErrorIs(t, err, discovery.ErrIncomplete)
		require.Len(t, water, 1)
		_, err = m.Category(t.Context(), "fire")
		require.EqualError(t, err, `unknown category "fire" (documents that could not be read: 1; the first: get /apis/g.example/v1: the server behind this API does not answer)`)
		_, err = m.Lookup(t.Context(), "gates")
		require.ErrorIs(t, err, discovery.ErrUnknownResource)
		require.ErrorIs(t, err, discovery.ErrStale)

		s.set("/apis+", grouped(`"3"`, staleButKnown))
		require.ErrorIs(t, m.Refresh(t.Context()), discovery.ErrStale)
		require.NoError(t, must.Err(m.Lookup(t.Context(), "gates")), "the document of the server is newer than the known one")
		require.ErrorIs(t, must.Err(m.Lookup(t.Context(), "sluices")), discovery.ErrUnknownResource)

		s.set("/apis+", status(500, "InternalError", "no"))
		<-time.After(10 * time.Second)
		all, err = m.All(t.Context())
		require.EqualError(t, err, "list resources: get /apis: no")
		require.Len(t, all, 5)
		<-time.After(10 * time.Second)
		found, err := m.Category(t.Context(), "all")
		require.EqualError(t, err, "look up category all: get /apis: no")
		require.Equal(t, []api.Resource{pods}, plainly(found))

		s.set("/apis+", grouped(`"4"`, gates))
		<-time.After(10 * time.Second)
		all = must.Get(m.All(t.Context()))(t)
		require.Len(t, all, 5)
		require.Empty(t, m.Failed())

		s.set("/apis+", grouped(`"5"`, `{"version":"v1","freshness":"Current","resources":[]}`))
		require.NoError(t, m.Refresh(t.Context()))
		require.EqualError(t, must.Err(m.Lookup(t.Context(), "gates")), `unknown resource "gates"`, "an empty version is not kept")
	})
}

// TestAVersionThatAnswersIsPreferred prefers it to a version that does not answer, as client-go does.
func TestAVersionThatAnswersIsPreferred(t *testing.T) {
	gate := `"resources":[{"resource":"gates","responseKind":{"kind":"Gate"},"verbs":["list"]}]`
	s := newServer(map[string]page{"/apis+": grouped("", `{"version":"v2","freshness":"Stale",`+gate+`},{"version":"v1",`+gate+`}`)})
	m := discovery.New(s.client(t), discovery.Options{})
	found := must.Get(m.Lookup(t.Context(), "gates"))(t)
	require.Equal(t, "v1", found.Version)
	require.True(t, found.Preferred)
	found = must.Get(m.Lookup(t.Context(), "gates.v2"))(t)
	require.False(t, found.Preferred)
}

// TestNothingButAStaleGroup has a server with a single group, which is stale.
func TestNothingButAStaleGroup(t *testing.T) {
	m := discovery.New(newServer(map[string]page{"/apis+": grouped("", down)}).client(t), discovery.Options{})
	_, err := m.Lookup(t.Context(), "sluices")
	require.ErrorIs(t, err, discovery.ErrUnknownResource)
	require.ErrorIs(t, err, discovery.ErrStale)
}

// TestAGroupOfAnOldServerKeepsItsPlace is the same test with one document per version.
func TestAGroupOfAnOldServerKeepsItsPlace(t *testing.T) {
	for name, broken := range map[string]page{
		"unavailable": status(503, "ServiceUnavailable", "gone"),
		"forbidden":   status(403, "Forbidden", "no"),
		"a page":      {contentType: "text/html", body: "<title>log in</title>"},
		"nonsense":    plain(`[]`),
		"cut":         plain(`{"kind":"APIResourceList","resources":[{"name":"`),
		"cut short":   {body: `{"kind":"APIResourceList"`, missing: 10},
		"another":     plain(`{"kind":"APIResourceList","groupVersion":"b.example/v1","resources":[]}`),
		"a Status":    plain(`{"kind":"Status","apiVersion":"v1"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(plainPages)
			m := discovery.New(s.client(t), discovery.Options{RefreshInterval: -1})
			require.NoError(t, m.Refresh(t.Context()))
			s.set("/apis/a.example/v2", broken)
			require.ErrorIs(t, m.Refresh(t.Context()), discovery.ErrIncomplete)
			require.Len(t, m.Failed(), 1)
			require.Equal(t, "/apis/a.example/v2", m.Failed()[0].Path)
			found := must.Get(m.Lookup(t.Context(), "mills.v2.a.example"))(t)
			require.Equal(t, mills, found.Resource)

			m = discovery.New(s.client(t), discovery.Options{})
			found = must.Get(m.Lookup(t.Context(), "mills"))(t)
			require.Equal(t, oldMills, found.Resource, "only the other version is known")
			_, err := m.Lookup(t.Context(), "things")
			require.ErrorIs(t, err, discovery.ErrUnknownResource)
			require.ErrorContains(t, err, "documents that could not be read: 1; the first: get /apis/a.example/v2: ")
		})
	}
}

// TestADefinitionThatIsInstalledLater installs a custom resource after the first look-up.
func TestADefinitionThatIsInstalledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(testserver.Options{})
		stop := fixture.Start(t, s.Run)
		c := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}))(t)
		m := discovery.New(c, discovery.Options{})
		require.ErrorIs(t, must.Err(m.Lookup(t.Context(), "wh")), discovery.ErrUnknownResource)

		definitions := must.Get(m.Lookup(t.Context(), "crd"))(t)
		wheel := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "wheels.leat.example"},
			"spec": map[string]any{
				"group": "leat.example", "scope": "Cluster",
				"names":    map[string]any{"plural": "wheels", "kind": "Wheel", "singular": "rota", "shortNames": []any{"wh"}, "categories": []any{"all"}},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"scale": map[string]any{}}}},
			},
		}}
		must.Get(apiclient.NewTyped[*unstructured.Unstructured](c, definitions.Resource, "").Create(t.Context(), wheel, metav1.CreateOptions{}))(t)
		<-time.After(10 * time.Second)
		for _, name := range []string{"wh", "rota", "wheels.leat.example", "Wheel"} {
			found := must.Get(m.Lookup(t.Context(), name))(t)
			require.Equal(t, api.Resource{Group: "leat.example", Version: "v1", Kind: "Wheel", Plural: "wheels"}, found.Resource)
			require.Equal(t, []discovery.Subresource{{
				Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: []string{"get", "patch", "update"},
			}}, found.Subresources)
		}
		var discoveries []string
		for _, r := range s.Requests() {
			if strings.HasPrefix(r.Path, "/api") && !strings.Contains(r.Path, "/v1") {
				discoveries = append(discoveries, r.Path)
			}
		}
		require.Equal(t, []string{"/api", "/apis", "/api", "/apis"}, discoveries)
		stop()
	})
}
