package clientgo_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestDynamic takes an object of each type through its life with the dynamic client, beginning with an apply.
func TestDynamic(t *testing.T) {
	t.Parallel()
	c := dynamic.NewForConfigOrDie(server.Config)
	for _, s := range allSamples(t) {
		t.Run(s.label(), func(t *testing.T) {
			require.NoError(t, s.missing)
			dynamicLife(t, c.Resource(s.mapping.Resource).Namespace(s.GetNamespace()), s)
		})
	}
}

func dynamicLife(t *testing.T, c dynamic.ResourceInterface, s sample) {
	t.Helper()
	s.SetLabels(map[string]string{"by": "apply"})
	apply := metav1.ApplyOptions{FieldManager: "conformance"}
	first := must.Get(c.Apply(t.Context(), s.GetName(), s.Unstructured, apply))(t)
	require.Equal(t, s.GetAPIVersion(), first.GetAPIVersion())
	require.Equal(t, s.GetKind(), first.GetKind())
	requireRest(t, first.GetResourceVersion(), func() (metav1.Object, error) {
		return c.Apply(t.Context(), s.GetName(), s.Unstructured, apply)
	})

	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.GetAPIVersion(), "kind": s.GetKind(),
		"metadata": map[string]any{"name": s.GetName(), "labels": map[string]any{"by": "other"}},
	}}
	_, err := c.Apply(t.Context(), s.GetName(), other, metav1.ApplyOptions{FieldManager: "other"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `conflict with "conformance"`)
	require.ErrorContains(t, err, ".metadata.labels.by")
	forced := must.Get(c.Apply(t.Context(), s.GetName(), other, metav1.ApplyOptions{FieldManager: "other", Force: true}))(t)
	require.Equal(t, "other", forced.GetLabels()["by"])

	list := must.Get(c.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + s.GetName()}))(t)
	require.Len(t, list.Items, 1)
	require.Equal(t, s.GetKind()+"List", list.GetKind())
	read := must.Get(c.Get(t.Context(), s.GetName(), metav1.GetOptions{}))(t)
	read.SetAnnotations(map[string]string{"by": "update"})
	updated := must.Get(c.Update(t.Context(), read, metav1.UpdateOptions{}))(t)
	require.Equal(t, "update", updated.GetAnnotations()["by"])
	dry, err := c.Patch(t.Context(), s.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"by":"patch"}}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	require.Equal(t, "patch", dry.GetAnnotations()["by"])
	read = must.Get(c.Get(t.Context(), s.GetName(), metav1.GetOptions{}))(t)
	require.Equal(t, "update", read.GetAnnotations()["by"], "a dry run stores nothing") // controllers may have changed the status
	background := metav1.DeletePropagationBackground
	require.NoError(t, c.Delete(t.Context(), s.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}))
}

// TestMetadata reads, watches, patches and deletes an object of each type, of which the client sees the metadata only.
func TestMetadata(t *testing.T) {
	t.Parallel()
	objects := dynamic.NewForConfigOrDie(server.Config)
	all := metadata.NewForConfigOrDie(server.Config)
	for _, s := range allSamples(t) {
		t.Run(s.label(), func(t *testing.T) {
			require.NoError(t, s.missing)
			s.SetLabels(map[string]string{"by": "create"})
			must.Get(objects.Resource(s.mapping.Resource).Namespace(s.GetNamespace()).Create(t.Context(), s.Unstructured, metav1.CreateOptions{}))(t)
			c := all.Resource(s.mapping.Resource).Namespace(s.GetNamespace())
			options := metav1.ListOptions{FieldSelector: "metadata.name=" + s.GetName()}
			list := must.Get(c.List(t.Context(), options))(t)
			require.Len(t, list.Items, 1)
			require.Equal(t, "create", list.Items[0].Labels["by"])
			options.ResourceVersion = list.ResourceVersion
			watching := must.Get(c.Watch(t.Context(), options))(t)
			defer watching.Stop()
			for range 3 {
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"at": list.Items[0].ResourceVersion}}})
				require.NoError(t, err)
				patched := must.Get(c.Patch(t.Context(), s.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}))(t)
				list.Items[0].ResourceVersion = patched.ResourceVersion
			}
			background := metav1.DeletePropagationBackground
			require.NoError(t, c.Delete(t.Context(), s.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}))
			requireEnd(t, watching)
		})
	}
}
