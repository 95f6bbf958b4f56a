package discovery_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// onEveryServer runs a test with the formats of a new and of an old server.
func onEveryServer(t *testing.T, test func(t *testing.T, m *discovery.Mapper)) {
	for name, pages := range map[string]map[string]page{"aggregated": aggregatedPages, "plain": plainPages} {
		t.Run(name, func(t *testing.T) {
			test(t, discovery.New(newServer(pages).client(t), discovery.Options{}))
		})
	}
}

func TestLookup(t *testing.T) {
	onEveryServer(t, func(t *testing.T, m *discovery.Mapper) {
		for asked, want := range map[string]api.Resource{
			"pods":                                   pods,
			"pod":                                    pods, // and not the mills of a.example, whose short name it is
			"Pod":                                    pods,
			"PODS":                                   pods,
			"po":                                     pods,
			"pods.v1":                                pods,
			"pods.v1.":                               pods,
			"po.v1":                                  pods,
			"nodes":                                  nodes,
			"no":                                     nodes,
			"events":                                 events, // the core group first
			"ev":                                     events,
			"events.events.k8s.io":                   newEvents,
			"ev.events":                              newEvents, // the beginning of a group
			"events.v1.events.k8s.io":                newEvents,
			"deployments":                            deployments,
			"deploy":                                 deployments,
			"Deployment":                             deployments,
			"deployments.apps":                       deployments,
			"deploy.apps":                            deployments,
			"deployment.v1.apps":                     deployments,
			"deployments.v1":                         deployments,
			"deploy.app":                             deployments,
			"hpa":                                    scalers, // the preferred version
			"hpa.autoscaling":                        scalers,
			"hpa.v1.autoscaling":                     oldScalers,
			"horizontalpodautoscaler.v1":             oldScalers,
			"storageclass.storage":                   classes,
			"sc":                                     classes, // before the short name of a later group
			"sc.a.example":                           mills,
			"vac":                                    attributes, // only in a version that is not preferred
			"mills":                                  mills,      // the first group, its preferred version
			"mill":                                   windmills,  // a singular name before the kind of another resource
			"mill.a.example":                         mills,      // by its kind
			"grinder":                                mills,
			"mills.v1.a.example":                     oldMills,
			"mills.b.example":                        windmills,
			"windmill":                               windmills,
			"weirs.a.example":                        weirs,
			"wheels.v3.example":                      wheels, // a group that looks like a version
			"wheel.v3.example":                       wheels, // the kind, because the server sends no singular name
			"wheels.v1.v3.example":                   wheels,
			"HORIZONTALPODAUTOSCALER.V2.AUTOSCALING": scalers,
		} {
			got, err := m.Lookup(t.Context(), asked)
			require.NoError(t, err, asked)
			require.Equal(t, want, got.Resource, asked)
		}
	})
}

func TestLookupOfUnknownNames(t *testing.T) {
	onEveryServer(t, func(t *testing.T, m *discovery.Mapper) {
		for asked, want := range map[string]string{
			"pdos":                `unknown resource "pdos", did you mean "pods"?`,
			"podz":                `unknown resource "podz", did you mean "pods"?`,
			"deploymnt":           `unknown resource "deploymnt", did you mean "deployments.apps"?`,
			"deployments.aps":     `unknown resource "deployments.aps", did you mean "deployments.apps"?`,
			"deplyo":              `unknown resource "deplyo", did you mean "deployments.apps"?`,
			"pods.apps":           `unknown resource "pods.apps"`,
			"pods.v2":             `unknown resource "pods.v2"`,
			"pods.v1.apps":        `unknown resource "pods.v1.apps"`,
			"deployments.v9.apps": `unknown resource "deployments.v9.apps", did you mean "deployments.apps"?`,
			"deployments.v1.app":  `unknown resource "deployments.v1.app", did you mean "deployments.apps"?`, // with a version, the whole name of the group is needed
			"certificates":        `unknown resource "certificates"`,
			"windmill.apps":       `unknown resource "windmill.apps"`,
			"superpods":           `unknown resource "superpods"`,
			"pq":                  `unknown resource "pq"`, // every short name would be similar
			"x":                   `unknown resource "x"`,
			"status":              `unknown resource "status"`,
		} {
			_, err := m.Lookup(t.Context(), asked)
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, discovery.ErrUnknownResource)
			var unknown *discovery.UnknownResourceError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, asked, unknown.Name)
		}
	})
}

func TestLookupOfInvalidNames(t *testing.T) {
	s := newServer(nil)
	for _, asked := range []string{"", ".apps", "pods.", "a b", "../../secrets", "pods/status", "%2e", "pods..v1"} {
		_, err := discovery.Lookup(t.Context(), s.client(t), asked)
		require.ErrorContains(t, err, "is not a valid name of a resource; valid names are pods, deployments.apps and deployments.v1.apps")
	}
	require.Empty(t, s.requests())
}

func TestForKind(t *testing.T) {
	onEveryServer(t, func(t *testing.T, m *discovery.Mapper) {
		for _, tc := range []struct {
			kind schema.GroupVersionKind
			want api.Resource
		}{
			{schema.GroupVersionKind{Kind: "Pod"}, pods},
			{schema.GroupVersionKind{Version: "v1", Kind: "Event"}, events},
			{schema.GroupVersionKind{Group: "events.k8s.io", Kind: "Event"}, newEvents},
			{schema.GroupVersionKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, scalers},
			{schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}, oldScalers},
			{schema.GroupVersionKind{Group: "a.example", Kind: "Weir"}, weirs},
		} {
			got, err := m.ForKind(t.Context(), tc.kind)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Resource)
			got, err = m.ForResource(t.Context(), schema.GroupVersionResource{Group: tc.kind.Group, Version: tc.kind.Version, Resource: tc.want.Plural})
			require.NoError(t, err)
			require.Equal(t, tc.want, got.Resource)
		}
		for want, kind := range map[string]schema.GroupVersionKind{
			`unknown kind "Deployment", did you mean "deployments.apps"?`:       {Kind: "Deployment"}, // the core group
			`unknown kind "pod", did you mean "pods"?`:                          {Kind: "pod"},
			`unknown kind "Mill.v3.a.example", did you mean "mills.a.example"?`: {Group: "a.example", Version: "v3", Kind: "Mill"},
		} {
			_, err := m.ForKind(t.Context(), kind)
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, discovery.ErrUnknownResource)
		}
		for want, resource := range map[string]schema.GroupVersionResource{
			`unknown resource "po", did you mean "pods"?`:                      {Resource: "po"},
			`unknown resource "deployments", did you mean "deployments.apps"?`: {Resource: "deployments"},
		} {
			require.EqualError(t, must.Err(m.ForResource(t.Context(), resource)), want)
		}
	})
}

func TestCategory(t *testing.T) {
	onEveryServer(t, func(t *testing.T, m *discovery.Mapper) {
		require.Equal(t, []api.Resource{pods, deployments, scalers, mills}, plainly(must.Get(m.Category(t.Context(), "all"))(t)))
		_, err := m.Category(t.Context(), "none")
		require.EqualError(t, err, `unknown category "none"`)
		require.ErrorIs(t, err, discovery.ErrUnknownResource)
	})
}

func plainly(all []discovery.APIResource) (out []api.Resource) {
	for _, r := range all {
		out = append(out, r.Resource)
	}
	return out
}

// TestAll also checks facts that only one of the two formats has.
func TestAll(t *testing.T) {
	onEveryServer(t, func(t *testing.T, m *discovery.Mapper) {
		all := must.Get(m.All(t.Context()))(t)
		bindings := api.Resource{Version: "v1", Kind: "Binding", Plural: "bindings", Namespaced: true}
		require.Equal(t, []api.Resource{
			bindings, events, nodes, pods, deployments, newEvents, scalers, oldScalers, classes, attributes, mills, oldMills, weirs, windmills, wheels,
		}, plainly(all))
		require.Equal(t, discovery.APIResource{
			Resource: pods, Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"},
			Verbs: []string{"create", "get", "list", "watch"}, Preferred: true,
			Subresources: []discovery.Subresource{
				{Name: "eviction", Group: "policy", Version: "v1", Kind: "Eviction", Verbs: []string{"create"}},
				{Name: "log", Version: "v1", Kind: "Pod", Verbs: []string{"get"}},
			},
		}, all[3])
		require.Equal(t, []discovery.Subresource{{Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: []string{"get", "patch", "update"}}}, all[4].Subresources)
		require.Equal(t, []discovery.Subresource{{Name: "status", Group: "a.example", Version: "v2", Kind: "Mill", Verbs: []string{"get"}}}, all[10].Subresources)
		var others []api.Resource
		for _, r := range all {
			if !r.Preferred {
				others = append(others, r.Resource)
			}
		}
		require.Equal(t, []api.Resource{oldScalers, oldMills}, others)
		require.True(t, all[3].Can("get", "watch"))
		require.False(t, all[3].Can("get", "delete"))

		all[0].Plural = "changed"
		require.Equal(t, bindings, must.Get(m.All(t.Context()))(t)[0].Resource, "the slice is the caller's")
	})
}

// TestAmbiguity has resources with the same name or kind in one group and version.
func TestAmbiguity(t *testing.T) {
	m := discovery.New(newServer(map[string]page{
		"/apis+": aggregated("", `{"items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[
			{"resource":"processedtemplates","responseKind":{"kind":"Template"},"verbs":["create"]},
			{"resource":"rimreviews","responseKind":{"kind":"Rim"},"verbs":["create"]},
			{"resource":"rims","responseKind":{"kind":"Rim"},"verbs":["list"]},
			{"resource":"templates","responseKind":{"kind":"Template"},"verbs":["get"]},
			{"resource":"axles","responseKind":{"kind":"Axle"},"verbs":["list"],"shortNames":["a"]},
			{"resource":"axes","responseKind":{"kind":"Axle"},"verbs":["list"],"shortNames":["a"]},
			{"resource":"data","responseKind":{"kind":"Datum"},"singularResource":"datum","verbs":["list"]},
			{"resource":"logs","responseKind":{"kind":"Data"},"singularResource":"data","verbs":["list"]}]}]}]}`),
	}).client(t), discovery.Options{})
	template := must.Get(m.ForKind(t.Context(), schema.GroupVersionKind{Group: "g", Kind: "Template"}))(t)
	require.Equal(t, "templates", template.Plural, "the resource that can be read wins")
	rim := must.Get(m.ForKind(t.Context(), schema.GroupVersionKind{Group: "g", Kind: "Rim"}))(t)
	require.Equal(t, "rims", rim.Plural, "the resource that can be listed wins")
	data := must.Get(m.Lookup(t.Context(), "data"))(t)
	require.Equal(t, "data", data.Plural, "a plural name wins over another resource's singular")

	_, err := m.ForKind(t.Context(), schema.GroupVersionKind{Group: "g", Kind: "Axle"})
	require.EqualError(t, err, `"Axle.g" is ambiguous: it may be axles.g or axes.g`)
	require.ErrorIs(t, err, discovery.ErrAmbiguous)
	_, err = m.Lookup(t.Context(), "a")
	var ambiguous *discovery.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	require.Len(t, ambiguous.Resources, 2)

	ambiguous.Resources = make([]api.Resource, 30)
	for i := range ambiguous.Resources {
		ambiguous.Resources[i].Plural = "axles"
	}
	require.True(t, strings.HasSuffix(ambiguous.Error(), "axles or axles and 20 more"), ambiguous)
}

// TestAnExactGroupComesFirst checks that an exact group wins even if the server lists the other one first.
func TestAnExactGroupComesFirst(t *testing.T) {
	m := discovery.New(newServer(map[string]page{
		"/apis+": aggregated("", `{"items":[
			{"metadata":{"name":"ex.ample"},"versions":[{"version":"v1","resources":[{"resource":"cogs","responseKind":{"kind":"Cog"}}]}]},
			{"metadata":{"name":"v1.ex"},"versions":[{"version":"v1","resources":[{"resource":"cogs","responseKind":{"kind":"Cog"}}]}]},
			{"metadata":{"name":"ex"},"versions":[{"version":"v1","resources":[{"resource":"cogs","responseKind":{"kind":"Cog"}}]}]}]}`),
	}).client(t), discovery.Options{})
	for asked, group := range map[string]string{"cogs.ex": "ex", "cogs.v1.ex": "ex", "cogs.v1.v1.ex": "v1.ex", "cogs.ex.a": "ex.ample", "cogs": "ex.ample"} {
		require.Equal(t, group, must.Get(m.Lookup(t.Context(), asked))(t).Group, asked)
	}
}

func TestNewNeedsAClient(t *testing.T) {
	require.PanicsWithValue(t, "discovery: the Client of a Mapper is nil", func() { discovery.New(nil, discovery.Options{}) })
}

// TestOnTheTestServer uses the embedded server with custom resources. It also has an unknown token and a cancelled
// context.
func TestOnTheTestServer(t *testing.T) {
	for name, o := range map[string]testserver.Options{"aggregated": {}, "plain": {NoAggregatedDiscovery: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { onTheTestServer(t, o) })
		})
	}
}

func onTheTestServer(t *testing.T, o testserver.Options) {
	weirs := api.Resource{Group: "leat.example", Version: "v1", Kind: "Weir", Plural: "weirs", Namespaced: true}
	o.Tokens = testserver.Tokens{"good": "joe"}
	s := testserver.New(o)
	s.Define(testserver.Definition{Resource: weirs, ShortNames: []string{"wr"}, Categories: []string{"all"}})
	fixture.Start(t, s.Run)

	cfg := apiclient.Config{Host: s.URL(), Transport: s.Client().Transport, BearerToken: apiclient.NewSecret("good")}
	c := must.Get(apiclient.New(cfg))(t)
	for name, want := range map[string]api.Resource{
		"weirs": weirs, "wr.leat.example": weirs, "po": listerwatchertest.Pods, "deploy": deployments, "crd.v1.apiextensions.k8s.io": {
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
		},
		"namespace": {Version: "v1", Kind: "Namespace", Plural: "namespaces"},
	} {
		require.Equal(t, want, must.Get(discovery.Lookup(t.Context(), c, name))(t))
	}

	cfg.BearerToken = apiclient.NewSecret("bad")
	stranger := must.Get(apiclient.New(cfg))(t)
	_, err := discovery.Lookup(t.Context(), stranger, "pods")
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	require.NotErrorIs(t, err, discovery.ErrUnknownResource)

	stall := s.Inject(faults.Fault{Effect: faults.Stall{}})
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
}
