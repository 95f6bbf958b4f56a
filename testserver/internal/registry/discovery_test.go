package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// TestDiscoveryOnlyReads requires that discovery changes no definition, because many requests read them at once.
func TestDiscoveryOnlyReads(t *testing.T) {
	d := &registry.Definition{
		Settings: registry.Settings{Resource: api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills"}},
		Schema:   struct{ registry.Schema }{},
		Subs:     []registry.Subresource{{Name: "status", Verbs: metav1.Verbs{"get"}}, {Name: "scale", Kind: "Scale", Verbs: metav1.Verbs{"get"}}},
	}
	list, ok := registry.ResourceList([]*registry.Definition{d}, "leat.example", "v1")
	require.True(t, ok)
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"mills", "mills/scale", "mills/status"}, names)
	require.Equal(t, "status", d.Subs[0].Name)
}
