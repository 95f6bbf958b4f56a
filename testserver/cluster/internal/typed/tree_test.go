package typed_test

import (
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// TestTreesAreThoseOfApimachinery fills values of all types in all versions at random.
func TestTreesAreThoseOfApimachinery(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), legacyscheme.Codecs)
	for kind := range legacyscheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		for range 20 {
			value, err := legacyscheme.Scheme.New(kind)
			require.NoError(t, err)
			fill.Fill(value)
			want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
			require.NoError(t, err, kind)
			got, err := typed.TreeOf(value)
			require.NoError(t, err, kind)
			require.Equal(t, want, got, kind)
		}
	}
}

func TestOnlyPointersToStructsBecomeTrees(t *testing.T) {
	for _, from := range []any{nil, corev1.Pod{}, (*corev1.Pod)(nil), new(int)} {
		_, err := typed.TreeOf(from)
		require.ErrorContains(t, err, "is no pointer to a struct")
	}
	got, err := typed.TreeOf(&corev1.Pod{})
	require.NoError(t, err)
	require.Equal(t, object.Tree{"metadata": object.Tree{}, "spec": object.Tree{"containers": nil}, "status": object.Tree{}}, got)
}

// TestMetadataAreThoseOfApimachinery reads random metadata, some with a member of another type.
func TestMetadataAreThoseOfApimachinery(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, legacyscheme.Codecs)
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	wrong := 0
	for range 5_000 {
		meta := &metav1.ObjectMeta{}
		fill.Fill(meta)
		for i := range meta.ManagedFields {
			meta.ManagedFields[i].FieldsV1 = nil
		}
		tree, err := typed.TreeOf(meta)
		require.NoError(t, err)
		if random.Intn(2) == 0 {
			changed := slices.Sorted(maps.Keys(tree))[random.Intn(len(tree))]
			tree[changed] = []any{nil, "text", int64(1), true, object.Tree{"a": nil}, []any{nil}, []any{object.Tree{"uid": nil}}, ""}[random.Intn(8)]
		}
		want := &metav1.ObjectMeta{}
		sent := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}}
		got, err := typed.Take(&registry.Values{Sent: sent}, kind, object.Tree{"metadata": tree})
		if problem := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, want); problem != nil {
			require.Error(t, err, problem)
			wrong++
			continue
		}
		require.NoError(t, err)
		require.Equal(t, *want, got.(*core.ConfigMap).ObjectMeta)
	}
	require.NotZero(t, wrong)
}
