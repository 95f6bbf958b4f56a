package bootstrap_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/bootstrap"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
)

// installed returns a server's objects.
func installed(t testing.TB, o bootstrap.Options) *store.Store {
	var objects *store.Store
	testserver.NewExtended(testserver.Options{}, extension.Extension{
		Resources: builtin.Resources(), Connect: func(s *store.Store) { objects = s },
	})
	must.Get(bootstrap.Install(objects, o))(t)
	return objects
}

// find returns an object of a resource, or nil.
func find(s *store.Store, resource string, key api.Key) object.Tree {
	s.Lock()
	defer s.Unlock()
	r := s.Collection(schema.ParseGroupResource(resource)).Get(key)
	if r == nil {
		return nil
	}
	return r.Tree()
}

// TestObjectsAreThoseOfKubeAPIServer compares with testdata/objects.jsonl, which is what kube-apiserver 1.37.2 has
// after its start, without UIDs, versions and times.
func TestObjectsAreThoseOfKubeAPIServer(t *testing.T) {
	s := installed(t, bootstrap.Options{RBAC: true})
	text := must.Get(os.ReadFile("testdata/objects.jsonl"))(t)
	for line := range strings.Lines(string(text)) {
		var want struct {
			Resource string
			Object   object.Tree
		}
		require.NoError(t, json.Unmarshal([]byte(line), &want))
		meta := object.Metadata(want.Object)
		have := find(s, want.Resource, api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")})
		require.NotNil(t, have, "%s %s", want.Resource, meta["name"])
		forget(have)
		a := must.Get(json.MarshalIndent(want.Object, "", " "))(t)
		b := must.Get(json.MarshalIndent(have, "", " "))(t)
		require.Equal(t, string(a), string(b))
	}
}

// forget removes what differs between servers.
func forget(tree object.Tree) {
	meta := object.Metadata(tree)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(meta, name)
	}
	managers := object.SliceAt(meta, "managedFields")
	for _, m := range managers {
		delete(m.(object.Tree), "time")
	}
	slices.SortFunc(managers, func(a, b any) int {
		return strings.Compare(object.StringAt(a.(object.Tree), "manager"), object.StringAt(b.(object.Tree), "manager"))
	})
	for _, c := range object.SliceAt(object.MapAt(tree, "status"), "conditions") {
		delete(c.(object.Tree), "lastTransitionTime")
	}
}

func TestServersShareNothing(t *testing.T) {
	key := api.Key{Name: "exempt"}
	a, b := installed(t, bootstrap.Options{}), installed(t, bootstrap.Options{})
	require.NotEqual(t, "", object.StringAt(object.Metadata(find(a, "flowschemas.flowcontrol.apiserver.k8s.io", key)), "uid"))
	require.Nil(t, find(b, "clusterroles.rbac.authorization.k8s.io", api.Key{Name: "cluster-admin"}), "without RBAC")
	object.Metadata(find(a, "flowschemas.flowcontrol.apiserver.k8s.io", key))["name"] = "other"
	require.NotNil(t, find(b, "flowschemas.flowcontrol.apiserver.k8s.io", key))
}
