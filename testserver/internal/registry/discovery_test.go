package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
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

// TestOneGroupOfTwoServers has a group with a version of this server and one of another server. Each document lists the
// group once.
func TestOneGroupOfTwoServers(t *testing.T) {
	all := []*registry.Definition{{
		Settings: registry.Settings{Resource: api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills"}}, Custom: true,
	}}
	remote := []registry.RemoteGroup{{Name: "leat.example", Versions: []string{"v1", "v2"}}, {Name: "metrics.example", Versions: []string{"v1"}}}
	text := must.Get(json.Marshal(registry.GroupList(all, remote)))(t)
	require.JSONEq(t, `{"kind":"APIGroupList","apiVersion":"v1","groups":[
		{"name":"leat.example","versions":[{"groupVersion":"leat.example/v1","version":"v1"},{"groupVersion":"leat.example/v2","version":"v2"}],
			"preferredVersion":{"groupVersion":"leat.example/v1","version":"v1"}},
		{"name":"metrics.example","versions":[{"groupVersion":"metrics.example/v1","version":"v1"}],
			"preferredVersion":{"groupVersion":"metrics.example/v1","version":"v1"}}]}`, string(text))

	text = must.Get(json.Marshal(registry.AggregatedList(all, remote, "apis")))(t)
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct{ Version, Freshness string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &list))
	require.Equal(t, "[{{leat.example} [{v1 Current} {v2 Stale}]} {{metrics.example} [{v1 Stale}]}]", fmt.Sprint(list.Items))

	_, ok := registry.Group(all, remote, "absent.example")
	require.False(t, ok)
}
