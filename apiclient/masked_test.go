package apiclient_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestMaskedObjectsAreNotWritten reads a masked pod and checks that a TypedClient sends no write of it, and that a
// patch is sent.
func TestMaskedObjectsAreNotWritten(t *testing.T) {
	var got recorded
	c := newClient(t, onLoopback(t, recorder(&got, onePod)))
	mask := must.Get(codec.NewMask[*corev1.Pod]("spec.nodeName"))(t)
	masked := apiclient.NewMasked[*corev1.Pod](c, podResource, "", mask)
	typed := apiclient.NewTyped[*corev1.Pod](c, podResource, "")
	pod := must.Get(masked.Get(t.Context(), web, metav1.GetOptions{}))(t)
	for name, write := range map[string]func() (*corev1.Pod, error){
		"create": func() (*corev1.Pod, error) { return typed.Create(t.Context(), pod, metav1.CreateOptions{}) },
		"update": func() (*corev1.Pod, error) { return typed.Update(t.Context(), pod.DeepCopy(), metav1.UpdateOptions{}) },
		"status": func() (*corev1.Pod, error) { return typed.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}) },
	} {
		got = recorded{}
		_, err := write()
		var refused *codec.MaskedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, "spec.nodeName", refused.Fields)
		require.ErrorContains(t, err, "keeps only the fields spec.nodeName")
		require.Empty(t, got.Method, name)
	}
	patch := must.Get(apiclient.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}}))(t)
	must.Get(masked.Patch(t.Context(), web, patch, apiclient.PatchOptions{}))(t)
	require.Equal(t, "PATCH", got.Method)

	other := must.Get(codec.NewMask[*corev1.Pod]("spec.hostname"))(t)
	require.NotEqual(t, masked.Identity(), apiclient.NewMasked[*corev1.Pod](c, podResource, "", other).Identity())
	require.Equal(t, masked.Identity(), apiclient.NewMasked[*corev1.Pod](c, podResource, "", mask).Identity())
	require.NotEqual(t, masked.Identity(), typed.Identity())
	require.Panics(t, func() { apiclient.NewMasked[*corev1.Node](c, podResource, "", mask) })
}
