package columns_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/columns"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

func resource(t *testing.T, group, plural string) *registry.Definition {
	for _, d := range builtin.Resources() {
		if d.Group == group && d.Plural == plural {
			return d
		}
	}
	require.Fail(t, "there is no resource "+plural)
	return nil
}

func TestPodsHaveTheColumnsOfKubectl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := columns.For(resource(t, "", "pods"))
		var names []string
		for _, d := range c.Definitions("v1") {
			names = append(names, d.Name)
		}
		require.Equal(t, []string{
			"Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates",
		}, names)
		pod := object.Tree{
			"metadata": object.Tree{"name": "a", "creationTimestamp": time.Now().Add(-90 * time.Second).UTC().Format(time.RFC3339)},
			"spec":     object.Tree{"containers": []any{object.Tree{"name": "c"}}, "nodeName": "n"},
			"status":   object.Tree{"phase": "Succeeded"},
		}
		rows := must.Get(c.Rows("v1", pod))(t)
		require.Len(t, rows, 1)
		require.Equal(t, []any{"a", "0/1", "Succeeded", "0", "90s", "<none>", "n", "<none>", "<none>"}, rows[0].Cells)
		require.Len(t, rows[0].Conditions, 1)
		require.Nil(t, rows[0].Object.Object)
	})
}

// TestFlowSchemasAreSorted checks the order of a table, which other resources take from the list.
func TestFlowSchemasAreSorted(t *testing.T) {
	sorted, ok := columns.For(resource(t, "flowcontrol.apiserver.k8s.io", "flowschemas")).(registry.Sorted)
	require.True(t, ok)
	schema := func(name string, precedence int64) object.Tree {
		return object.Tree{"metadata": object.Tree{"name": name}, "spec": object.Tree{"matchingPrecedence": precedence}}
	}
	require.Negative(t, sorted.Compare(schema("b", 1), schema("a", 2)))
	require.Negative(t, sorted.Compare(schema("a", 2), schema("b", 2)))
	_, ok = columns.For(resource(t, "", "pods")).(registry.Sorted)
	require.False(t, ok)
}

func TestEveryResourceHasColumns(t *testing.T) {
	for _, d := range builtin.Resources() {
		if d.Virtual() {
			continue
		}
		for _, version := range append([]string{d.Version}, d.Versions...) {
			c := columns.For(d)
			tree := object.Tree{"metadata": object.Tree{"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}
			rows, err := c.Rows(version, tree)
			require.NoError(t, err, d.Plural)
			require.Len(t, rows, 1, d.Plural)
			if d.Plural != "ipaddresses" { // Kubernetes prints an age without a column
				require.Len(t, rows[0].Cells, len(c.Definitions(version)), d.Plural)
			}
		}
	}
}

func TestScaleHasColumns(t *testing.T) {
	c := columns.Scale()
	var names []string
	for _, d := range c.Definitions("v1") {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"Name", "Desired", "Available", "Age"}, names)
	rows := must.Get(c.Rows("v1", object.Tree{
		"metadata": object.Tree{"name": "a"}, "spec": object.Tree{"replicas": int64(3)}, "status": object.Tree{"replicas": int64(2)},
	}))(t)
	require.Equal(t, []any{"a", int64(3), int64(2), "<unknown>"}, rows[0].Cells)
}

func TestKindsWithoutAPrinterAreSparse(t *testing.T) {
	_, sparse := resource(t, "rbac.authorization.k8s.io", "roles").Columns.(registry.Sparse)
	require.True(t, sparse)
	_, sparse = resource(t, "", "pods").Columns.(registry.Sparse)
	require.False(t, sparse)
}
