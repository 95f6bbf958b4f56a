package reflector

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

func TestEqualContent(t *testing.T) {
	pod := func(overhead string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse(overhead)}}}
	}
	printed := pod("1000m")
	for name, q := range printed.Spec.Overhead {
		_ = q.String()
		printed.Spec.Overhead[name] = q
	}
	require.True(t, hasEqualContent(printed, pod("1000m")))
	require.True(t, hasEqualContent(printed, pod("1")), "the same number, written differently")
	require.False(t, hasEqualContent(printed, pod("2")))

	type hidden struct{ text string }
	require.True(t, hasEqualContent(&hidden{"a"}, &hidden{"a"}))
	require.False(t, hasEqualContent(&hidden{"a"}, &hidden{"b"}), "a type without JSON")
	require.False(t, hasEqualContent(&metav1.ObjectMeta{Name: "a"}, &metav1.ObjectMeta{Name: "b"}))
}

func TestIsSame(t *testing.T) {
	a, b := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	require.True(t, api.Identical(a, a))
	require.False(t, api.Identical(a, b))
	require.False(t, api.Identical([]byte{}, []byte{}), "values that are not pointers are not compared")
}

// A list compares at most a hundred objects, however many copies the source returns.
func TestComparisonsAreBounded(t *testing.T) {
	r := &Reflector[*metav1.PartialObjectMetadata]{}
	object := &metav1.PartialObjectMetadata{}
	for range 1000 {
		require.False(t, r.unversioned(object, object))
	}
	require.Zero(t, r.versions.compared, "the same pointer is not compared")
	for range 1000 {
		require.False(t, r.unversioned(object, object.DeepCopy()))
	}
	require.Equal(t, maxCompared, r.versions.compared)
	require.False(t, r.unversioned(object, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Pod"}}))
}
