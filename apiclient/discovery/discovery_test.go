package discovery_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

// documents are served by path; what is not here is a 404, and an empty one a 503.
type documents map[string]string

func (d documents) client(t *testing.T, asked *[]string) *apiclient.Client {
	t.Helper()
	dial := listerwatchertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		body, ok := d[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case body == "":
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
	}))
	c, err := apiclient.New(apiclient.Config{Host: "http://server.memory", DialContext: dial})
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

var cluster = documents{
	"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1": `{"resources":[{"name":"pods","kind":"Pod","namespaced":true},{"name":"pods/status","kind":"Pod","namespaced":true},{"name":"nodes","kind":"Node"},{"name":"events","kind":"Event","namespaced":true}]}`,
	"/apis": `{"groups":[
		{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}],"preferredVersion":{"version":"v1beta1"}},
		{"name":"apps","versions":[{"version":"v1"},{"version":"v1beta1"}],"preferredVersion":{"version":"v1"}},
		{"name":"events.k8s.io","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}},
		{"name":"a.example","versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}},
		{"name":"b.example","versions":[{"version":"v1"}]},
		{"name":"v3.example","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]}`,
	"/apis/apps":                   `{"name":"apps","versions":[{"version":"v1"},{"version":"v1beta1"}],"preferredVersion":{"version":"v1"}}`,
	"/apis/a.example":              `{"name":"a.example","versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}}`,
	"/apis/b.example":              `{"name":"b.example","versions":[{"version":"v1"}]}`,
	"/apis/v3.example":             `{"name":"v3.example","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}`,
	"/apis/metrics.k8s.io":         `{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}],"preferredVersion":{"version":"v1beta1"}}`,
	"/apis/apps/v1":                `{"resources":[{"name":"deployments","kind":"Deployment","namespaced":true},{"name":"deployments/scale","kind":"Scale","namespaced":true}]}`,
	"/apis/apps/v1beta1":           `{"resources":[{"name":"deployments","kind":"Deployment","namespaced":true},{"name":"olds","kind":"Old","namespaced":true}]}`,
	"/apis/events.k8s.io/v1":       `{"resources":[{"name":"events","kind":"Event","namespaced":true}]}`,
	"/apis/a.example/v1":           `{"resources":[{"name":"mills","kind":"Mill","namespaced":true},{"name":"weirs","kind":"Weir"}]}`,
	"/apis/a.example/v2":           `{"resources":[{"name":"mills","kind":"Mill","namespaced":true}]}`,
	"/apis/b.example/v1":           `{"resources":[{"name":"mills","kind":"Windmill","namespaced":true}]}`,
	"/apis/v3.example/v1":          `{"resources":[{"name":"wheels","kind":"Wheel"}]}`,
	"/apis/metrics.k8s.io/v1beta1": "",
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]api.Resource{
		"pods":                     {Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
		"Pods":                     {Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
		"pods.v1":                  {Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
		"pods.v1.":                 {Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
		"nodes":                    {Version: "v1", Kind: "Node", Plural: "nodes"},
		"events":                   {Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}, // the core group first
		"events.v1.events.k8s.io":  {Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true},
		"deployments":              {Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true},
		"deployments.apps":         {Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true},
		"deployments.v1beta1.apps": {Group: "apps", Version: "v1beta1", Kind: "Deployment", Plural: "deployments", Namespaced: true},
		"olds":                     {Group: "apps", Version: "v1beta1", Kind: "Old", Plural: "olds", Namespaced: true},
		"mills":                    {Group: "a.example", Version: "v2", Kind: "Mill", Plural: "mills", Namespaced: true}, // the first group, its preferred version
		"mills.b.example":          {Group: "b.example", Version: "v1", Kind: "Windmill", Plural: "mills", Namespaced: true},
		"weirs.a.example":          {Group: "a.example", Version: "v1", Kind: "Weir", Plural: "weirs"},
		"wheels.v3.example":        {Group: "v3.example", Version: "v1", Kind: "Wheel", Plural: "wheels"}, // a group that looks like a version
		"wheels.v1.v3.example":     {Group: "v3.example", Version: "v1", Kind: "Wheel", Plural: "wheels"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			got, err := discovery.Lookup(t.Context(), cluster.client(t, &asked), name)
			require.NoError(t, err)
			require.Equal(t, want, got)
			seen := map[string]bool{}
			for _, path := range asked {
				require.False(t, seen[path], "%s was read twice", path)
				seen[path] = true
			}
		})
	}
}

func TestLookupOfWhatIsNotThere(t *testing.T) {
	for name, want := range map[string]string{
		"podz":                `unknown resource "podz" (documents that could not be read: 1; the first: get /apis/metrics.k8s.io/v1beta1: the server answered 503 Service Unavailable: service unavailable)`,
		"pods.apps":           `unknown resource "pods.apps"`,
		"pods/status":         `discovery: "pods/status" is not the name of a resource, such as pods, deployments.apps or deployments.v1.apps`,
		"status":              `unknown resource "status" (`,
		"pods.v2":             `unknown resource "pods.v2"`,
		"deployments.v9.apps": `unknown resource "deployments.v9.apps"`,
		"things.none.example": `unknown resource "things.none.example"`,
		"":                    "is not the name of a resource",
		".apps":               "is not the name of a resource",
		"pods.":               "is not the name of a resource",
		"a b":                 "is not the name of a resource",
		"../../secrets":       "is not the name of a resource",
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			_, err := discovery.Lookup(t.Context(), cluster.client(t, &asked), name)
			require.ErrorContains(t, err, want)
			var unknown *discovery.UnknownResourceError
			if require.NotContains(t, err.Error(), "\n"); len(asked) == 0 {
				return
			}
			require.ErrorIs(t, err, discovery.ErrUnknownResource)
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, name, unknown.Name)
		})
	}
}

func TestLookupSaysWhyADocumentIsMissing(t *testing.T) {
	var asked []string
	_, err := discovery.Lookup(t.Context(), cluster.client(t, &asked), "nodes.metrics.k8s.io")
	require.ErrorIs(t, err, discovery.ErrUnknownResource)
	require.True(t, apierrors.IsServiceUnavailable(err), "what was wrong is beneath")
}

func TestLookupOnAServerThatIsNoAPIServer(t *testing.T) {
	for name, d := range map[string]documents{
		"no groups":     {"/api": `{}`},
		"not even core": {},
		"nonsense":      {"/api": `[]`},
		"down":          {"/api": ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			_, err := discovery.Lookup(t.Context(), d.client(t, &asked), "pods")
			require.ErrorContains(t, err, "look up pods: get /api")
			require.NotErrorIs(t, err, discovery.ErrUnknownResource)
		})
	}
}

// TestLookupOnTheTestServer runs against the embedded server, custom resources included, and shows what becomes of a
// token that it does not know and of a context that ends.
func TestLookupOnTheTestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mills := api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
		s := testserver.New(testserver.Options{Tokens: testserver.Tokens{"good": "joe"}})
		s.Register(mills)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()

		cfg := apiclient.Config{Host: s.URL(), Transport: s.Client().Transport, BearerToken: apiclient.NewSecret("good")}
		c, err := apiclient.New(cfg)
		require.NoError(t, err)
		for name, want := range map[string]api.Resource{
			"mills":              mills,
			"mills.leat.example": mills,
			"pods":               listerwatchertest.Pods,
			"deployments":        {Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true},
			"namespaces":         {Version: "v1", Kind: "Namespace", Plural: "namespaces"},
		} {
			got, err := discovery.Lookup(t.Context(), c, name)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}

		cfg.BearerToken = apiclient.NewSecret("bad")
		stranger, err := apiclient.New(cfg)
		require.NoError(t, err)
		for _, name := range []string{"pods", "mills.leat.example"} {
			_, err = discovery.Lookup(t.Context(), stranger, name)
			require.True(t, apierrors.IsUnauthorized(err), "%v", err)
			require.NotErrorIs(t, err, discovery.ErrUnknownResource)
		}

		stall := s.Inject(testserver.Fault{Effect: testserver.Stall{}})
		short, stop := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := discovery.Lookup(short, c, "pods")
			failed <- err
		}()
		synctest.Wait()
		stop()
		require.ErrorIs(t, <-failed, context.Canceled)
		stall.Remove()
		cancel()
		require.NoError(t, <-done)
	})
}
