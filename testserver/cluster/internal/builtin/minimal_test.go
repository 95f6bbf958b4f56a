package builtin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// minimal is a small valid object and what kube-apiserver makes of it. testdata/minimal.json has one for each kind,
// with the answers of kube-apiserver 1.37.2, which ran without optional admission plugins.
type minimal struct {
	Path   string      `json:"path"`
	Sent   object.Tree `json:"sent"`
	Stored object.Tree `json:"stored"`
}

func readMinimal(t testing.TB) []minimal {
	text := must.Get(os.ReadFile("testdata/minimal.json"))(t)
	var all []minimal
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// served returns the resource of a path such as apis/apps/v1/namespaces/default/deployments.
func served(t testing.TB, path string) (d *registry.Definition, version string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	group, rest := "", parts[1:]
	if parts[0] == "apis" {
		group, rest = parts[1], parts[2:]
	}
	return resource(t, group, rest[len(rest)-1]), rest[0]
}

func TestEveryKindGetsTheDefaultsOfKubeAPIServer(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range readMinimal(t) {
		d, version := served(t, m.Path)
		seen[d.GroupResource().String()+"/"+version] = true
		t.Run(m.Path, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				body := must.Get(json.Marshal(m.Sent))(t)
				stored := b.must("POST", m.Path, string(body))
				forget(stored)
				forget(m.Stored)
				want := must.Get(json.MarshalIndent(m.Stored, "", " "))(t)
				got := must.Get(json.MarshalIndent(stored, "", " "))(t)
				require.Equal(t, string(want), string(got))
			})
		})
	}
	for _, d := range builtin.Resources() {
		for _, version := range append([]string{d.Version}, d.Versions...) {
			if d.Plural == "podcertificaterequests" {
				continue // contain a signature that is valid for a few minutes
			}
			if name := fmt.Sprint(d.GroupResource(), "/", version); !d.Virtual() && !d.IsCRD() && !seen[name] {
				t.Errorf("testdata/minimal.json has no object of %s", name)
			}
		}
	}
}

// forget removes what differs from creation to creation, also from the specifications of Jobs and Services.
func forget(value any) {
	changing := []string{
		"uid", "resourceVersion", "creationTimestamp", "managedFields", "clusterIP", "clusterIPs", "lastTransitionTime", "lastPhaseTransitionTime", "timeAdded",
		"batch.kubernetes.io/controller-uid", "controller-uid", "username", "groups",
	}
	switch v := value.(type) {
	case object.Tree:
		for name, member := range v {
			if slices.Contains(changing, name) {
				delete(v, name)
			} else {
				forget(member)
			}
		}
	case []any:
		for _, item := range v {
			forget(item)
		}
	}
}
