package typed_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
)

// TestMembersAreTheTreesOfTheirValues fills values of all types with metadata, and reads them as trees and as Members.
func TestMembersAreTheTreesOfTheirValues(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(3), legacyscheme.Codecs)
	compared := 0
	for kind := range legacyscheme.Scheme.AllKnownTypes() {
		value, err := legacyscheme.Scheme.New(kind)
		require.NoError(t, err)
		if _, err := meta.Accessor(value); err != nil || kind.Version == runtime.APIVersionInternal {
			continue
		}
		empty, err := typed.TreeOf(value)
		require.NoError(t, err)
		for range 10 {
			fill.Fill(value)
			compared += compare(t, value, kind, empty)
		}
	}
	require.Greater(t, compared, 1_000)
}

// compare returns the number of Members.
func compare(t *testing.T, value runtime.Object, kind schema.GroupVersionKind, empty object.Tree) (n int) {
	from, err := typed.TreeOf(value)
	require.NoError(t, err, kind)
	want, err := typed.Untyped(value, kind, from)
	require.NoError(t, err, kind)
	for _, stored := range []bool{false, true} {
		got, err := typed.Members(value, kind, from, stored)
		require.NoError(t, err, kind)
		wantShape, wantOK := typed.AppendShape(nil, want, empty)
		gotShape, ok := typed.AppendShape(nil, got, empty)
		require.Equal(t, wantOK, ok, kind)
		if ok && !stored {
			require.Equal(t, string(wantShape), string(gotShape), kind)
		}
		if stored {
			typed.WithoutEmptyLists(want)
		}
		whole, err := typed.Whole(got)
		require.NoError(t, err, kind)
		require.Equal(t, want, whole, kind)
		for name, member := range got {
			if m, ok := member.(*typed.Member); ok && stored {
				n++
				encoded, err := m.AppendJSON(nil)
				require.NoError(t, err)
				expected, err := json.Marshal(want[name])
				require.NoError(t, err)
				require.Equal(t, string(expected), string(encoded), "%s %s", kind, name)
				sameTexts(t, want, got, name)
			}
		}
	}
	return n
}

// sameTexts compares the texts of scalars below a path.
func sameTexts(t *testing.T, want, got object.Tree, path ...string) {
	at := want
	for _, name := range path {
		at = object.MapAt(at, name)
	}
	for name, value := range at {
		next := append(slices.Clone(path), name)
		switch value.(type) {
		case object.Tree:
			sameTexts(t, want, got, next...)
		case []any:
		case nil:
			require.Contains(t, []string{"", "[]"}, object.TextAt(got, next...), next)
		default:
			require.Equal(t, object.TextAt(want, next...), object.TextAt(got, next...), next)
		}
	}
	require.Empty(t, object.TextAt(got, append(slices.Clone(path), "no such field", "x")...))
}

func TestATreeWithoutMembersIsWhole(t *testing.T) {
	tree := pod(t)
	whole, err := typed.Whole(tree)
	require.NoError(t, err)
	whole["new"] = true
	require.Equal(t, tree, whole, "it is no copy")

	sent := &corev1.Pod{}
	sent.Labels = map[string]string{"a": "b"}
	members, err := typed.Members(sent, podKind, nil, false)
	require.NoError(t, err)
	whole, err = typed.Whole(members)
	require.NoError(t, err)
	require.IsType(t, &typed.Member{}, members["spec"], "Whole does not change its tree")
	require.Equal(t, []string{"apiVersion", "kind", "metadata", "spec", "status"}, slices.Sorted(maps.Keys(whole)))
	require.Equal(t, object.Tree{"containers": nil}, whole["spec"])
}

func TestMembersKeepTheManagersOfTheTree(t *testing.T) {
	tree := pod(t)
	members, err := typed.Members(versioned(t, tree), podKind, tree, true)
	require.NoError(t, err)
	require.Equal(t, object.Metadata(tree)["managedFields"], object.Metadata(members)["managedFields"])
}

// TestMembersKeepTheManagersOfABody has a value that a client sent with managers of its own.
func TestMembersKeepTheManagersOfABody(t *testing.T) {
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "old"}}}}
	tree, err := typed.Members(sent, corev1.SchemeGroupVersion.WithKind("ConfigMap"), nil, false)
	require.NoError(t, err)
	require.Equal(t, []any{object.Tree{"manager": "old"}}, object.Metadata(tree)["managedFields"])
}

func TestALongShape(t *testing.T) {
	sent := &corev1.ConfigMap{Data: map[string]string{}}
	for i := range 40 {
		sent.Data[strings.Repeat("x", 500+i)] = ""
	}
	members, err := typed.Members(sent, corev1.SchemeGroupVersion.WithKind("ConfigMap"), nil, false)
	require.NoError(t, err)
	_, ok := typed.AppendShape(nil, members, nil)
	require.False(t, ok)
}
