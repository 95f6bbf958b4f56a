package controllerruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/e2e/conformance/samples"
	"github.com/leatproject/leat/internal/fixture/must"
)

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
}

func widget(namespace, name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
}

func key(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

// TestInstallCRDs checks that envtest has installed the definition and has waited for it.
func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	require.NoError(t, installed)
	crd := &apiextensionsCRD{}
	require.NoError(t, direct.Get(t.Context(), client.ObjectKey{Name: "widgets." + widgets.Group}, crd))
}

// TestSamples creates, reads and deletes an object of each built-in type.
func TestSamples(t *testing.T) {
	t.Parallel()
	all := must.Get(samples.All(server.Namespace(t)))(t)
	for _, s := range all {
		if !types.Recognizes(s.GroupVersionKind()) {
			continue
		}
		t.Run(s.GetKind()+"."+s.GetAPIVersion(), func(t *testing.T) {
			made := must.Get(types.New(s.GroupVersionKind()))(t)
			o := made.(client.Object)
			require.NoError(t, convert(s, o))
			require.NoError(t, direct.Create(t.Context(), o))
			require.NotEmpty(t, o.GetUID())
			before := o.DeepCopyObject().(client.Object)
			o.SetLabels(map[string]string{"by": "patch"})
			require.NoError(t, direct.Patch(t.Context(), o, client.MergeFrom(before)))
			require.NoError(t, direct.Get(t.Context(), key(o), o))
			require.Equal(t, "patch", o.GetLabels()["by"])
			require.NoError(t, direct.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
	}
}

// TestPatches patches a Deployment in every way.
func TestPatches(t *testing.T) {
	t.Parallel()
	d := deployment(server.Namespace(t), "d")
	require.NoError(t, direct.Create(t.Context(), d, client.FieldOwner("conformance"), client.FieldValidation("Strict")))
	require.Equal(t, "conformance", d.ManagedFields[0].Manager)
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
	require.NoError(t, direct.Patch(t.Context(), d, client.StrategicMergeFrom(before)))
	require.Len(t, d.Spec.Template.Spec.Containers, 2)
	require.Equal(t, corev1.TerminationMessageReadFile, d.Spec.Template.Spec.Containers[1].TerminationMessagePolicy, "defaults are filled in")

	stale := d.DeepCopy()
	stale.ResourceVersion = before.ResourceVersion
	changed := stale.DeepCopy()
	changed.Annotations = map[string]string{"by": "patch"}
	err := direct.Patch(t.Context(), changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{}))
	require.True(t, apierrors.IsConflict(err), "%v", err)

	before = d.DeepCopy()
	d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[1:]
	require.NoError(t, direct.Patch(t.Context(), d, client.StrategicMergeFrom(before)))
	require.Len(t, d.Spec.Template.Spec.Containers, 1)
	require.Equal(t, "sidecar", d.Spec.Template.Spec.Containers[0].Name)

	apply := applyappsv1.Deployment(d.Name, d.Namespace).WithSpec(applyappsv1.DeploymentSpec().WithReplicas(4))
	require.NoError(t, direct.Apply(t.Context(), apply, client.FieldOwner("replicas"), client.ForceOwnership))
	require.NoError(t, direct.Get(t.Context(), key(d), d))
	require.EqualValues(t, 4, *d.Spec.Replicas)

	d.Status.ObservedGeneration = d.Generation
	d.Spec.Paused = true
	require.NoError(t, direct.Status().Update(t.Context(), d))
	require.False(t, d.Spec.Paused, "the status changes alone")
	scale := &autoscalingv1.Scale{}
	require.NoError(t, direct.SubResource("scale").Get(t.Context(), d, scale))
	require.EqualValues(t, 4, scale.Spec.Replicas)
	scale.Spec.Replicas = 1
	require.NoError(t, direct.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)))
	require.NoError(t, client.NewDryRunClient(direct).Delete(t.Context(), d))
	require.NoError(t, direct.Get(t.Context(), key(d), d))
	require.EqualValues(t, 1, *d.Spec.Replicas)
}

// TestCustomResource checks defaults, validation, rules, pruning, apply and subresources of a custom resource.
func TestCustomResource(t *testing.T) {
	t.Parallel()
	require.NoError(t, installed)
	w := widget(server.Namespace(t), "w")
	require.NoError(t, direct.Create(t.Context(), w))
	require.EqualValues(t, 2, *w.Spec.Size, "the default")
	require.EqualValues(t, 1, w.Generation)

	for size, message := range map[int32]string{11: "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10", 7: "seven is not a size"} {
		bad := w.copy()
		bad.Spec.Size = &size
		err := direct.Update(t.Context(), bad)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, message)
	}
	part := func(name, color string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": widgets.String(), "kind": "Widget", "metadata": map[string]any{"name": w.Name, "namespace": w.Namespace},
			"spec": map[string]any{"parts": []any{map[string]any{"name": name, "color": color}}},
		}}
	}
	for _, name := range []string{"left", "right"} {
		require.NoError(t, direct.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(part(name, "red")), client.FieldOwner(name)))
	}
	err := direct.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(part("left", "blue")), client.FieldOwner("right"))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, direct.Get(t.Context(), key(w), w))
	require.Equal(t, []WidgetPart{{"left", "red"}, {"right", "red"}}, w.Spec.Parts)
	require.EqualValues(t, 3, w.Generation)

	w.Status.Replicas = 5
	require.NoError(t, direct.Status().Update(t.Context(), w))
	scale := &autoscalingv1.Scale{}
	require.NoError(t, direct.SubResource("scale").Get(t.Context(), w, scale))
	require.EqualValues(t, 2, scale.Spec.Replicas)
	require.EqualValues(t, 5, scale.Status.Replicas)

	unknown := &unstructured.Unstructured{}
	unknown.SetGroupVersionKind(widgets.WithKind("Widget"))
	unknown.SetNamespace(w.Namespace)
	unknown.SetName("unknown")
	require.NoError(t, unstructured.SetNestedField(unknown.Object, "x", "spec", "nothing"))
	require.NoError(t, direct.Create(t.Context(), unknown))
	_, found, err := unstructured.NestedString(unknown.Object, "spec", "nothing")
	require.NoError(t, err)
	require.False(t, found, "unknown fields are dropped")
}

// TestLists lists with selectors and pages, as objects, as metadata and untyped, and deletes a selection.
func TestLists(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"name": name}}}
		require.NoError(t, direct.Create(t.Context(), m))
	}
	in := client.InNamespace(namespace)
	var maps corev1.ConfigMapList
	selected := must.Get(metav1.ParseToLabelSelector("name in (a, b)"))(t)
	selector := must.Get(metav1.LabelSelectorAsSelector(selected))(t)
	require.NoError(t, direct.List(t.Context(), &maps, in, client.MatchingLabelsSelector{Selector: selector}))
	require.Len(t, maps.Items, 2)
	require.NoError(t, direct.List(t.Context(), &maps, in, client.MatchingFields{"metadata.name": "c"}))
	require.Len(t, maps.Items, 1)

	require.NoError(t, direct.List(t.Context(), &maps, in, client.Limit(2), client.HasLabels{"name"}))
	require.Len(t, maps.Items, 2)
	require.NoError(t, direct.List(t.Context(), &maps, in, client.Limit(2), client.HasLabels{"name"}, client.Continue(maps.Continue)))
	require.Len(t, maps.Items, 1)

	partial := &metav1.PartialObjectMetadataList{}
	partial.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	require.NoError(t, direct.List(t.Context(), partial, in, client.HasLabels{"name"}))
	require.Len(t, partial.Items, 3)
	untyped := &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	require.NoError(t, direct.List(t.Context(), untyped, in, client.HasLabels{"name"}))
	require.Len(t, untyped.Items, 3)

	require.NoError(t, direct.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, in, client.MatchingLabels{"name": "a"}))
	harness.Wait(t, "the deletion", func() error {
		err := direct.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errStillThere
	})
}
