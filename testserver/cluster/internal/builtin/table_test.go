package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/registry"
)

func TestDiscoveryListsEveryKindOnceWithKnownTypes(t *testing.T) {
	seen := map[schema.GroupVersionKind]bool{}
	for _, d := range builtin.Resources() {
		if d.IsCRD() {
			continue // package definitions has its types
		}
		for _, version := range append([]string{d.Version}, d.Versions...) {
			gvk := d.In(version).GroupVersionKind()
			require.False(t, seen[gvk], "%s is listed twice", gvk)
			seen[gvk] = true
			require.True(t, builtin.Scheme().Recognizes(gvk), "%s has no Go type", gvk)
			for _, sub := range d.Subresources() {
				target := registry.Target{Served: version, Subresource: sub.Name}
				_, _, err := d.Schema.Decode(target, "application/json", []byte(`{}`))
				require.NoError(t, err, "%s/%s", gvk, sub.Name)
			}
		}
	}
	require.GreaterOrEqual(t, len(seen), 66)
}

func TestDiscoveryNamesSubresources(t *testing.T) {
	list, ok := registry.ResourceList(builtin.Resources(), "", "v1")
	require.True(t, ok)
	found := map[string]string{}
	for _, r := range list.APIResources {
		found[r.Name] = r.Kind
	}
	for name, kind := range map[string]string{
		"pods/eviction": "Eviction", "pods/resize": "Pod", "pods/log": "Pod", "namespaces/finalize": "Namespace",
		"serviceaccounts/token": "TokenRequest", "replicationcontrollers/scale": "Scale", "bindings": "Binding",
	} {
		require.Equal(t, kind, found[name], name)
	}
}
