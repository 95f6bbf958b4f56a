package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// resource returns a built-in resource.
func resource(t testing.TB, group, plural string) *registry.Definition {
	for _, d := range builtin.Resources() {
		if d.Group == group && d.Plural == plural {
			return d
		}
	}
	require.Fail(t, "there is no resource "+plural)
	return nil
}

// create creates an object from JSON as the writer of the server does.
func create(d *registry.Definition, body string) (object.Tree, []string, error) {
	target := registry.Target{Served: d.Version}
	tree, problems, err := d.Schema.Decode(target, "application/json", []byte(body))
	if err != nil {
		return nil, problems, err
	}
	meta := object.Metadata(tree)
	meta["uid"], meta["creationTimestamp"] = "6e2c8e8e-0000-0000-0000-000000000001", "2026-01-01T00:00:00Z"
	if d.Namespaced {
		meta["namespace"] = "default"
	}
	stored, warnings, err := d.Schema.Create(registry.Operation{Target: target}, tree)
	return stored, append(problems, warnings...), err
}

const pod = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`

func TestPodGetsTheDefaultsOfKubernetes(t *testing.T) {
	stored, notes, err := create(resource(t, "", "pods"), pod)
	require.NoError(t, err)
	require.Empty(t, notes)
	spec := object.MapAt(stored, "spec")
	require.Equal(t, "Always", spec["restartPolicy"])
	require.Equal(t, "default-scheduler", spec["schedulerName"])
	require.Equal(t, object.Tree{"phase": "Pending", "qosClass": "BestEffort"}, stored["status"])
	require.Equal(t, int64(1), object.Metadata(stored)["generation"])
}

func TestTypesNameTheirPackageAndTheirDeprecation(t *testing.T) {
	require.Equal(t, "*core.PodList", resource(t, "", "pods").TypeName("PodList"))
	require.Equal(t, "*rbac.Role", resource(t, "rbac.authorization.k8s.io", "roles").TypeName("Role"))
	require.Empty(t, resource(t, "", "pods").WarningsIn("v1"))
	require.Equal(t, []string{"v1 ComponentStatus is deprecated in v1.19+"}, resource(t, "", "componentstatuses").WarningsIn("v1"))
	require.Equal(t, []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
		resource(t, "", "endpoints").WarningsIn("v1"))
	require.EqualError(t, resource(t, "", "componentstatuses").NotFound("x"), `componentstatus "x" not found`)
}
