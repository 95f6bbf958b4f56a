package fieldmanager_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

func parse(t *testing.T, text string) object.Tree {
	t.Helper()
	data := must.Get(yaml.YAMLToJSON([]byte(text)))(t)
	tree := must.Get(object.Decode(data))(t)
	return tree
}

// owners returns the managers of an object as "name operation fields".
func owners(t *testing.T, tree object.Tree) (out []string) {
	t.Helper()
	for _, e := range object.SliceAt(object.Metadata(tree), "managedFields") {
		fields := must.Get(json.Marshal(e.(object.Tree)["fieldsV1"]))(t)
		out = append(out, object.StringAt(e.(object.Tree), "manager")+" "+object.StringAt(e.(object.Tree), "operation")+" "+string(fields))
	}
	return out
}

func TestListsWithoutTypesHaveOneOwner(t *testing.T) {
	m := fieldmanager.Untyped(fieldmanager.Kind{Group: "example.com", Kind: "Thing"})
	live, err := m.Updated(registry.Manager{Name: "me", Served: "v1"}, nil,
		parse(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {list: [{name: a}]}}"))
	require.NoError(t, err)
	require.Equal(t, []string{`me Update {"f:spec":{".":{},"f:list":{}}}`}, owners(t, live))

	config := parse(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {list: [{name: b}]}}")
	other := registry.Manager{Name: "other", Served: "v1"}
	_, err = m.Applied(other, live, config, false)
	require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "me" using example.com/v1: .spec.list`)
	taken, err := m.Applied(other, live, config, true)
	require.NoError(t, err)
	require.Equal(t, []any{object.Tree{"name": "b"}}, object.SliceAt(object.MapAt(taken, "spec"), "list"))
}

func TestMetadataHaveTypes(t *testing.T) {
	m := fieldmanager.Untyped(fieldmanager.Kind{Group: "example.com", Kind: "Thing"})
	const thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x, "
	live, err := m.Applied(registry.Manager{Name: "one", Served: "v1"}, nil, parse(t, thing+"finalizers: [a], ownerReferences: [{uid: '1', name: n}]}"), false)
	require.NoError(t, err)
	both, err := m.Applied(registry.Manager{Name: "two", Served: "v1"}, live, parse(t, thing+"finalizers: [b], ownerReferences: [{uid: '2', name: n}]}"), false)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, object.StringsAt(object.Metadata(both), "finalizers"))
	require.Equal(t, []string{
		`one Apply {"f:metadata":{"f:finalizers":{"v:\"a\"":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`,
		`two Apply {"f:metadata":{"f:finalizers":{"v:\"b\"":{}},"f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}}}`,
	}, owners(t, both))
	_, err = m.Applied(registry.Manager{Name: "two", Served: "v1"}, both, parse(t, thing+"ownerReferences: [{uid: '1', name: other}]}"), false)
	require.ErrorContains(t, err, `conflict with "one": .metadata.ownerReferences[uid="1"]`)
}
