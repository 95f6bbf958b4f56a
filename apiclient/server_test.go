package apiclient_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// withServer runs a test against the embedded server in a bubble.
func withServer(t *testing.T, o testserver.Options, test func(t *testing.T, s *testserver.Server, c *apiclient.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(o)
		stop := fixture.Start(t, s.Run)
		test(t, s, newClient(t, to(s)))
		stop()
	})
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// TestTheLifeOfAPod uses every verb with a server that has state.
func TestTheLifeOfAPod(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, _ *testserver.Server, c *apiclient.Client) {
		ctx := t.Context()
		pods := apiclient.NewTyped[*corev1.Pod](c, podResource, "")
		before := newPod("web")

		require.NotEmpty(t, must.Get(pods.Create(ctx, before, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))(t).UID)
		_, err := pods.Get(ctx, web, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.EqualError(t, err, `get pods default/web: pods "web" not found`)

		created := must.Get(pods.Create(ctx, before, metav1.CreateOptions{}))(t)
		require.Empty(t, before.Kind, "the argument is not changed")
		require.Equal(t, "Pod", created.Kind)
		_, err = pods.Create(ctx, before, metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		generated, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-"}, Spec: before.Spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Regexp(t, "^web-.{5}$", generated.Name)

		stale := created.DeepCopy()
		created.Labels = map[string]string{"app": "web"}
		updated := must.Get(pods.Update(ctx, created, metav1.UpdateOptions{}))(t)
		_, err = pods.Update(ctx, stale, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "%v", err)

		updated.Status.Phase, updated.Spec.PriorityClassName = corev1.PodRunning, "high"
		running := must.Get(pods.UpdateStatus(ctx, updated, metav1.UpdateOptions{}))(t)
		require.Equal(t, corev1.PodRunning, running.Status.Phase)
		require.Empty(t, running.Spec.PriorityClassName, "the spec is not written with the status")

		merge := must.Get(apiclient.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "front", "app": nil}}}))(t)
		patched := must.Get(pods.Patch(ctx, web, merge, apiclient.PatchOptions{}))(t)
		require.Equal(t, map[string]string{"tier": "front"}, patched.Labels)
		test := must.Get(apiclient.JSONPatch(
			apiclient.JSONPatchOperation{Op: "test", Path: "/metadata/labels/tier", Value: "front"},
			apiclient.JSONPatchOperation{Op: "replace", Path: "/metadata/labels/tier", Value: "back"},
		))(t)
		patched = must.Get(pods.Patch(ctx, web, test, apiclient.PatchOptions{}))(t)
		require.Equal(t, "back", patched.Labels["tier"])
		require.Error(t, must.Err(pods.Patch(ctx, web, test, apiclient.PatchOptions{})), "the condition no longer holds")

		o := apiclient.ApplyOptions{}
		o.FieldManager, o.Force = "leat", true
		applied := must.Get(pods.Apply(ctx, web, map[string]any{"metadata": map[string]any{"annotations": map[string]string{"a": "b"}}}, o))(t)
		require.Equal(t, "b", applied.Annotations["a"])

		wrong, right := types.UID("wrong"), applied.UID
		err = pods.Delete(ctx, web, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.ErrorContains(t, err, "delete pods default/web: ")
		require.NoError(t, pods.Delete(ctx, web, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &right}, GracePeriodSeconds: new(int64)}))
		require.True(t, apierrors.IsNotFound(must.Err(pods.Get(ctx, web, metav1.GetOptions{}))))

		for _, name := range []string{"a", "b", "c"} {
			p := newPod(name)
			p.Labels = map[string]string{"keep": map[bool]string{true: "yes", false: "no"}[name == "b"]}
			must.Get(pods.Create(ctx, p, metav1.CreateOptions{}))(t)
		}
		require.NoError(t, apiclient.NewPartial[*corev1.Pod](c, podResource, "default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "keep=no"}))
		var left []*corev1.Pod
		must.Get(pods.List(ctx, api.Options[*corev1.Pod]{ListOptions: metav1.ListOptions{LabelSelector: "keep"}}, keep(&left)))(t)
		require.Len(t, left, 1)
		require.Equal(t, "b", left[0].Name)
	})
}

// TestEveryKindOfType reads and writes one custom resource with every kind of T.
func TestEveryKindOfType(t *testing.T) {
	mills := api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		s.Register(mills)
		ctx := t.Context()
		whole := apiclient.NewTyped[*unstructured.Unstructured](c, mills, "default")
		created, err := whole.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"nodeName": "n1", "wheels": int64(2)},
		}}, metav1.CreateOptions{})
		require.NoError(t, err, "Apply adds apiVersion and kind")
		require.Equal(t, "leat.example/v1", created.GetAPIVersion())

		projected := must.Get(apiclient.NewPartial[*pod](c, mills, "default").Get(ctx, api.Key{Name: "web"}, metav1.GetOptions{}))(t)
		require.Equal(t, "n1", projected.Spec.NodeName)

		metadata, err := apiclient.NewPartial[*metav1.PartialObjectMetadata](c, mills, "default").Get(ctx, api.Key{Name: "web"}, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, created.GetUID(), metadata.UID)

		o := apiclient.ApplyOptions{}
		o.FieldManager = "leat"
		projected, err = apiclient.NewPartial[*pod](c, mills, "default").Apply(ctx, api.Key{Name: "web"}, map[string]any{"spec": map[string]any{"height": 3}}, o)
		require.NoError(t, err)
		require.Equal(t, "n1", projected.Spec.NodeName)
		full := must.Get(whole.Get(ctx, web, metav1.GetOptions{}))(t)
		require.Equal(t, map[string]any{"nodeName": "n1", "wheels": int64(2), "height": int64(3)}, full.Object["spec"])
	})
}
