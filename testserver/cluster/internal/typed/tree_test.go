package typed_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
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
