package discovery_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	manyPods = `{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["list"]}]}]}]}`
	noGroups = `{"kind":"APIGroupDiscoveryList","items":[]}`
)

// TestFallBack has servers and proxies that answer with another format than the requested one.
func TestFallBack(t *testing.T) {
	with := func(changes map[string]page) map[string]page {
		s := newServer(plainPages)
		for path, p := range changes {
			s.set(path, p)
		}
		return s.pages
	}
	old := []string{
		"/api", "/api/v1", "/apis", "/apis/apps/v1", "/apis/events.k8s.io/v1", "/apis/autoscaling/v2", "/apis/autoscaling/v1",
		"/apis/storage.k8s.io/v1", "/apis/storage.k8s.io/v1beta1", "/apis/a.example/v2", "/apis/a.example/v1", "/apis/b.example/v1", "/apis/v3.example/v1",
	}
	notAcceptable := status(406, "NotAcceptable", "only the following media types are accepted: application/json")
	relabelled := func(contentType, path string) page {
		return page{contentType: contentType, body: aggregatedPages[path].body}
	}
	for name, tc := range map[string]struct {
		pages    map[string]page
		requests []string
	}{
		"aggregated":    {aggregatedPages, []string{"/api+", "/apis+"}},
		"an old server": {plainPages, old},
		"406": {
			with(map[string]page{"/api+": notAcceptable, "/apis+": notAcceptable}),
			append([]string{"/api+", "/api", "/api/v1", "/apis+"}, old[2:]...),
		},
		"404": {
			with(map[string]page{"/apis+": {code: 404}}),
			append([]string{"/api", "/api/v1", "/apis+"}, old[2:]...),
		},
		"one of each": {with(map[string]page{"/api+": aggregatedPages["/api+"]}), append([]string{"/api+"}, old[2:]...)},
		"v2beta1": {
			map[string]page{"/api+": relabelled(v2beta1Type, "/api+"), "/apis+": relabelled(v2beta1Type, "/apis+")},
			[]string{"/api+", "/apis+"},
		},
		"parameters stripped": {
			map[string]page{"/api+": relabelled("application/json", "/api+"), "/apis+": relabelled("application/json; charset=utf-8", "/apis+")},
			[]string{"/api+", "/apis+"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.pages)
			m := discovery.New(s.client(t), discovery.Options{})
			require.Len(t, must.Get(m.All(t.Context()))(t), 15)
			require.Equal(t, tc.requests, s.requests(), "each document is read once")
		})
	}
}

// TestHalfAServer has only one of /api and /apis, or shows only one of them.
func TestHalfAServer(t *testing.T) {
	forbidden := status(403, "Forbidden", `forbidden: User "joe" cannot get path`)
	t.Run("no core group", func(t *testing.T) {
		m := discovery.New(newServer(map[string]page{"/apis+": aggregatedPages["/apis+"]}).client(t), discovery.Options{})
		must.Get(m.Lookup(t.Context(), "deploy"))(t)
		require.Empty(t, m.Failed(), "a server may lack the core group")
	})
	t.Run("no groups", func(t *testing.T) {
		m := discovery.New(newServer(map[string]page{"/api+": aggregatedPages["/api+"]}).client(t), discovery.Options{})
		must.Get(m.Lookup(t.Context(), "po"))(t)
	})
	t.Run("groups forbidden", func(t *testing.T) {
		s := newServer(aggregatedPages)
		m := discovery.New(s.client(t), discovery.Options{RefreshInterval: -1})
		require.NoError(t, m.Refresh(t.Context()))
		s.set("/apis+", forbidden)
		require.ErrorIs(t, m.Refresh(t.Context()), discovery.ErrIncomplete)
		require.NoError(t, must.Err(m.Lookup(t.Context(), "deploy")), "the resources were read earlier")

		m = discovery.New(s.client(t), discovery.Options{})
		must.Get(m.Lookup(t.Context(), "po"))(t)
		_, err := m.Lookup(t.Context(), "deploy")
		require.ErrorIs(t, err, discovery.ErrUnknownResource)
		require.True(t, apierrors.IsForbidden(err), "the error has the reason")
		require.Equal(t, "/apis", m.Failed()[0].Path)
		all, err := m.All(t.Context())
		require.ErrorIs(t, err, discovery.ErrIncomplete)
		require.Len(t, all, 4)
	})
	t.Run("core forbidden", func(t *testing.T) {
		m := discovery.New(newServer(map[string]page{"/api+": forbidden, "/apis+": aggregatedPages["/apis+"]}).client(t), discovery.Options{})
		_, err := m.Lookup(t.Context(), "po")
		require.ErrorIs(t, err, discovery.ErrUnknownResource)
		require.True(t, apierrors.IsForbidden(err))
	})
}

// TestUselessAnswers checks that an answer that cannot be used is a *DocumentError and says nothing about the name.
func TestUselessAnswers(t *testing.T) {
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	as := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	page404 := page{code: 404, body: "404 page not found"}
	forbidden := status(403, "Forbidden", "no")
	for name, tc := range map[string]struct {
		core, groups page
		path         string
		check        func(error) bool
	}{
		"nothing":                 {page404, page404, "/apis", apierrors.IsNotFound},
		"all forbidden":           {forbidden, forbidden, "/api", apierrors.IsForbidden},
		"forbidden and not there": {page404, forbidden, "/apis", apierrors.IsForbidden},
		"not there and forbidden": {forbidden, page404, "/api", apierrors.IsForbidden},
		"unauthorized":            {status(401, "Unauthorized", "who?"), plain(manyPods), "/api", apierrors.IsUnauthorized},
		"unauthorized later":      {plain(manyPods), status(401, "Unauthorized", "who?"), "/apis", apierrors.IsUnauthorized},
		"unavailable":             {plain(manyPods), status(503, "ServiceUnavailable", "no"), "/apis", apierrors.IsServiceUnavailable},
		"a page":                  {page{contentType: "text/html", body: "<html>"}, page{}, "/api", as(new(*apiclient.ContentTypeError))},
		"a page as JSON":          {plain("<html>"), page{}, "/api", is(discovery.ErrMalformed)},
		"nothing at all":          {plain(""), page{}, "/api", is(discovery.ErrMalformed)},
		"a list":                  {plain("[]"), page{}, "/api", is(discovery.ErrMalformed)},
		"a number":                {plain("7"), page{}, "/api", is(discovery.ErrMalformed)},
		"null":                    {plain("null"), plain("null"), "/apis", is(discovery.ErrMalformed)},
		"empty":                   {plain("{}"), plain("{}"), "/apis", is(discovery.ErrMalformed)},
		"empty lists":             {plain(noGroups), plain(noGroups), "/apis", is(discovery.ErrMalformed)},
		"cut":                     {plain(manyPods), plain(aggregatedPages["/apis+"].body[:500]), "/apis", is(discovery.ErrMalformed)},
		"wrong types":             {plain(`{"kind":"APIGroupDiscoveryList","items":{}}`), page{}, "/api", is(discovery.ErrMalformed)},
		"a Status":                {plain(`{"kind":"Status"}`), page{}, "/api", is(discovery.ErrMalformed)},
		"a list of pods":          {plain(`{"kind":"PodList","items":[]}`), page{}, "/api", is(discovery.ErrMalformed)},
		"groups as core":          {plain(`{"kind":"APIGroupList","groups":[]}`), page{}, "/api", is(discovery.ErrMalformed)},
		"core as groups":          {plain(manyPods), plain(`{"kind":"APIVersions","versions":["v1"]}`), "/apis", is(discovery.ErrMalformed)},
		"a long wrong value":      {plain(`{"kind":"APIGroupDiscoveryList","items":[{"versions":"` + strings.Repeat("MARKER", 1<<18) + `"}]}`), page{}, "/api", is(discovery.ErrMalformed)},
		"a long wrong type":       {plain(`{"kind":"APIVersions","versions":{"` + strings.Repeat("MARKER", 1<<18) + `":7}}`), page{}, "/api", is(discovery.ErrMalformed)},
		"a long kind":             {plain(`{"kind":"` + strings.Repeat("MARKER", 1<<18) + `"}`), page{}, "/api", is(discovery.ErrMalformed)},
		"mislabelled":             {aggregated("", `{"kind":"APIVersions","versions":["v1"]}`), page{}, "/api", is(discovery.ErrMalformed)},
		"huge":                    {plain(strings.Repeat(" ", 16<<20) + "{}"), page{}, "/api", func(err error) bool { return strings.Contains(err.Error(), "16777216") }},
	} {
		t.Run(name, func(t *testing.T) {
			m := discovery.New(newServer(map[string]page{"/api": tc.core, "/apis": tc.groups}).client(t), discovery.Options{})
			_, err := m.Lookup(t.Context(), "pods")
			require.ErrorContains(t, err, "look up pods: get "+tc.path+": ")
			require.NotErrorIs(t, err, discovery.ErrUnknownResource)
			require.True(t, tc.check(err), "%v", err)
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 1500, "the text of an error is bounded")
			var document *discovery.DocumentError
			require.ErrorAs(t, err, &document)
			require.Equal(t, tc.path, document.Path)
			require.Equal(t, []*discovery.DocumentError{document}, m.Failed())
		})
	}
}

// TestAConnectionThatBreaks loses the connection between two documents of an old server. This is an error, and the
// other groups are not used.
func TestAConnectionThatBreaks(t *testing.T) {
	s := newServer(plainPages)
	s.gate = func(r *http.Request) {
		if r.URL.Path == "/apis/autoscaling/v2" {
			panic(http.ErrAbortHandler)
		}
	}
	m := discovery.New(s.client(t), discovery.Options{})
	_, err := m.Lookup(t.Context(), "pods")
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "look up pods: get /apis/autoscaling/v2: ")
}

// TestAUserThatIsRefusedLater gets 401 between two documents. This is an error too.
func TestAUserThatIsRefusedLater(t *testing.T) {
	s := newServer(plainPages)
	s.set("/apis/autoscaling/v2", status(401, "Unauthorized", "who?"))
	_, err := discovery.Lookup(t.Context(), s.client(t), "pods")
	require.True(t, apierrors.IsUnauthorized(err))
	require.EqualError(t, err, "look up pods: get /apis/autoscaling/v2: who?")
}

// TestOddEntries checks that invalid names, entries without a kind, and duplicates are skipped.
func TestOddEntries(t *testing.T) {
	entry := func(name, kind string) string {
		return fmt.Sprintf(`{"resource":%q,"responseKind":{"kind":%q},"verbs":["list"]}`, name, kind)
	}
	group := func(name, version, resources string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"resources":[%s]}]}`, name, version, resources)
	}
	m := discovery.New(newServer(map[string]page{
		"/api+": plain(`{"kind":"APIGroupDiscoveryList","items":[` + group("apps", "v1", entry("impostors", "Impostor")) + `,` + group("", "v1", entry("pods", "Pod")) + `]}`),
		"/apis+": plain(`{"kind":"APIGroupDiscoveryList","items":[` + strings.Join([]string{
			group("", "v1", entry("pods", "Impostor")),
			group("g", "v1", strings.Join([]string{
				entry("axles", "Axle"), entry("axles", "Impostor"), entry("", "Impostor"), entry("a/b", "Impostor"), entry("..", "Impostor"),
				entry("\\u001b[2J", "Impostor"), `{"resource":"kindless","responseKind":null,"subresources":[{"subresource":"x","verbs":["get"]}]}`,
				`{"resource":"emptyhanded"}`, entry("impostors", "Imp\\u001b[31mostor"),
				`{"resource":"bolts","responseKind":{"kind":"Bolt"},"singularResource":"\u001bc","shortNames":["bo","\u001b]0;x\u0007"],
					"categories":["\n","all"],"verbs":["get","\u202eteg"],"subresources":[{"subresource":"a/b"},{"subresource":"\u001bc"},{"subresource":"status","verbs":["\r","get"]}]}`,
			}, ",")),
			group("g", "v1", entry("impostors", "Impostor")),
			group("g", "../v1", entry("impostors", "Impostor")),
			group("../g", "v1", entry("impostors", "Impostor")),
			group("g", "v2", entry("cogs", "Cog")),
		}, ",") + `]}`),
	}).client(t), discovery.Options{})
	all := must.Get(m.All(t.Context()))(t)
	var names []string
	for _, r := range all {
		names = append(names, r.Kind+" "+r.Plural+"."+r.Version+"."+r.Group)
	}
	require.Equal(t, []string{"Pod pods.v1.", "Axle axles.v1.g", "Bolt bolts.v1.g", "Cog cogs.v2.g"}, names)
	bolts := all[2]
	bolts.Resource = api.Resource{}
	require.Equal(t, discovery.APIResource{
		ShortNames: []string{"bo"}, Categories: []string{"all"}, Verbs: []string{"get"}, Preferred: true,
		Subresources: []discovery.Subresource{{Name: "status", Verbs: []string{"get"}}},
	}, bolts)
}

// TestManyEntries has more of everything than a real server. With a linear search for each entry, both parts took
// minutes.
func TestManyEntries(t *testing.T) {
	read := func(many int) time.Duration {
		var groups, resources strings.Builder
		for i := range many {
			fmt.Fprintf(&groups, `{"metadata":{"name":"g%d"},"versions":[{"version":"v1"}]},`, i)
			fmt.Fprintf(&resources, `{"resource":"r%d","responseKind":{"kind":"R"}},`, i)
		}
		m := discovery.New(newServer(map[string]page{
			"/api+": plain(`{"kind":"APIGroupDiscoveryList","items":[]}`),
			"/apis+": plain(`{"kind":"APIGroupDiscoveryList","items":[` + groups.String() +
				`{"metadata":{"name":"last"},"versions":[{"version":"v1","resources":[` + resources.String() + `{"resource":"r0","responseKind":{"kind":"R"}}]}]}]}`),
		}).client(t), discovery.Options{})
		began := time.Now()
		require.Len(t, must.Get(m.All(t.Context()))(t), many)
		return time.Since(began)
	}
	// Quadratic work would take a hundred times as long. A busy machine can stop either read, but not in every pair.
	for range 10 {
		if read(100_000) < 50*read(10_000) {
			return
		}
	}
	t.Fatal("ten times the entries take fifty times as long")
}

// TestOddGroupsOfAnOldServer checks that an invalid name never becomes a part of a path.
func TestOddGroupsOfAnOldServer(t *testing.T) {
	s := newServer(map[string]page{
		"/api": plain(`{"versions":["v1","v1","..","a/b"]}`),
		"/apis": plain(`{"groups":[{"name":"g","versions":[{"version":"v1"},{"version":"v1"},{"version":"gone"}]},{"name":"g","versions":[{"version":"v1"}]},
			{"name":"../..","versions":[{"version":"v1"}]},{"name":"","versions":[{"version":"v1"}]},{"name":"bare"}]}`),
		"/api/v1":    plain(`{"resources":[{"name":"pods","kind":"Pod"},{"name":"pods/log","kind":"Pod"},{"name":"orphans/log","kind":"Log"}]}`),
		"/apis/g/v1": plain(`{"resources":[{"name":"axles","kind":"Axle"}]}`),
	})
	m := discovery.New(s.client(t), discovery.Options{})
	all := must.Get(m.All(t.Context()))(t)
	require.Len(t, all, 2)
	require.Len(t, all[0].Subresources, 1)
	require.Equal(t, []string{"/api", "/api/v1", "/apis", "/apis/g/v1", "/apis/g/gone"}, s.requests())
}
