package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestDiscovery compares the mapper with the server's plain discovery documents, read with net/http.
func TestDiscovery(t *testing.T) {
	m := discovery.New(newClient(t, adminConfig()), discovery.Options{})
	all := must.Get(m.All(t.Context()))(t)
	require.Empty(t, m.Failed())
	var got []string
	for _, r := range all {
		got = append(got, fmt.Sprintf("%s %s %v %s %v", r.GroupVersion(), r.Plural, r.Namespaced, r.Kind, r.ShortNames))
	}
	slices.Sort(got)
	require.Equal(t, documented(t), got)

	for typed, want := range map[string]api.Resource{
		"po": pods, "pod": pods, "Pod": pods, "pods": pods, "deploy": deployments, "deployment.apps": deployments,
		"deployments.v1.apps": deployments, "cm": configMaps, "pdb": disruptionBudgets,
		"sa": serviceAccounts, "selfsubjectreviews": selfReviews,
	} {
		found, err := m.Lookup(t.Context(), typed)
		require.NoError(t, err, typed)
		require.Equal(t, want, found.Resource, typed)
	}
	everything := must.Get(m.Category(t.Context(), "all"))(t)
	require.Contains(t, plurals(everything), "pods")
	require.Contains(t, plurals(everything), "deployments")
	require.NotContains(t, plurals(everything), "secrets")

	scaled := must.Get(m.ForKind(t.Context(), schema.GroupVersionKind{Group: "apps", Kind: "Deployment"}))(t)
	require.Contains(t, scaled.Subresources, subresource(scaled, "scale"))
	require.True(t, scaled.Can("list", "watch", "patch"))
}

func plurals(resources []discovery.APIResource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, r.Plural)
	}
	return names
}

func subresource(r discovery.APIResource, name string) discovery.Subresource {
	at := slices.IndexFunc(r.Subresources, func(s discovery.Subresource) bool { return s.Name == name })
	if at < 0 {
		return discovery.Subresource{Name: name}
	}
	return r.Subresources[at]
}

// documented returns every resource from the documents of the groups' versions.
func documented(t *testing.T) []string {
	t.Helper()
	read := func(path string, into any) {
		answer := must.Get(server.Must(t.Context(), http.MethodGet, path, nil))(t)
		require.NoError(t, json.Unmarshal(answer, into))
	}
	versions := map[string]string{"v1": "/api/v1"}
	groups := metav1.APIGroupList{}
	read("/apis", &groups)
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions[v.GroupVersion] = "/apis/" + v.GroupVersion
		}
	}
	var all []string
	for version, path := range versions {
		list := metav1.APIResourceList{}
		read(path, &list)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				all = append(all, fmt.Sprintf("%s %s %v %s %v", version, r.Name, r.Namespaced, r.Kind, r.ShortNames))
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestDiscoveryOfALaterResource looks a resource up before it is defined, and repeats that until it is.
func TestDiscoveryOfALaterResource(t *testing.T) {
	m := discovery.New(newClient(t, adminConfig()), discovery.Options{RefreshInterval: -1})
	require.ErrorIs(t, must.Err(m.Lookup(t.Context(), "latecomers")), discovery.ErrUnknownResource)
	want := customResource(t, "Latecomer")
	require.NoError(t, eventually(t.Context(), func() error { return known(t.Context(), m, "latecomer", want) }))
}

func known(ctx context.Context, m *discovery.Mapper, typed string, want api.Resource) error {
	found, err := m.Lookup(ctx, typed)
	if err == nil && found.Resource != want {
		err = fmt.Errorf("%s is %+v", typed, found.Resource)
	}
	return err
}
