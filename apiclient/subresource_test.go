package apiclient_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var serviceAccounts = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}

func scaleOf(c *apiclient.Client) *apiclient.Endpoint[*autoscalingv1.Scale, *autoscalingv1.Scale] {
	return apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](c, deployments, web, "scale")
}

func newDeployment() *appsv1.Deployment {
	replicas := int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}
}

// TestSubresourceOptionsOnTheWire sends dry-run, field manager and field validation with every call that has them.
func TestSubresourceOptionsOnTheWire(t *testing.T) {
	var got recorded
	c := newClient(t, onLoopback(t, recorder(&got, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"}}`)))
	all := []string{metav1.DryRunAll}
	const options = "dryRun=All&fieldManager=leat&fieldValidation=Strict"
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	intent := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": 3}}
	apply := apiclient.Patch{Type: types.ApplyPatchType, Data: []byte(`{"kind":"Scale"}`)}
	for name, tt := range map[string]struct {
		call                              func(ctx context.Context) error
		method, query, contentType, holds string
	}{
		"get": {func(ctx context.Context) error {
			_, err := scaleOf(c).Get(ctx, metav1.GetOptions{ResourceVersion: "7"})
			return err
		}, http.MethodGet, "resourceVersion=7", "", ""},
		"create": {func(ctx context.Context) error {
			_, err := scaleOf(c).Create(ctx, scale, metav1.CreateOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"})
			return err
		}, http.MethodPost, options, "application/json", `"replicas":3`},
		"update": {func(ctx context.Context) error {
			_, err := scaleOf(c).Update(ctx, scale, metav1.UpdateOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"})
			return err
		}, http.MethodPut, options, "application/json", `"replicas":3`},
		"patch": {func(ctx context.Context) error {
			_, err := scaleOf(c).Patch(ctx, patchOf(t, intent), metav1.PatchOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"})
			return err
		}, http.MethodPatch, options, "application/merge-patch+json", `"replicas":3`},
		"apply as a patch": {func(ctx context.Context) error {
			_, err := scaleOf(c).Patch(ctx, apply, metav1.PatchOptions{FieldManager: "leat"})
			return err
		}, http.MethodPatch, "fieldManager=leat", "application/apply-patch+yaml", `{"kind":"Scale"}`},
		"apply": {
			func(ctx context.Context) error {
				_, err := scaleOf(c).Apply(ctx, intent, metav1.ApplyOptions{DryRun: all, FieldManager: "leat", Force: true})
				return err
			}, http.MethodPatch, "dryRun=All&fieldManager=leat&force=true", "application/apply-patch+yaml",
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":3}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tt.call(t.Context()))
			require.Equal(t, "/apis/apps/v1/namespaces/default/deployments/web/scale", got.Path)
			require.Equal(t, tt.method, got.Method)
			require.Equal(t, tt.query, got.Query.Encode())
			require.Equal(t, tt.contentType, got.Header.Get("Content-Type"))
			require.Contains(t, got.Body, tt.holds)
		})
	}
	got = recorded{}
	_, err := scaleOf(c).Apply(t.Context(), intent, metav1.ApplyOptions{})
	require.EqualError(t, err, "apply deployments.apps default/web/scale: apiclient: a server-side apply needs a field manager")
	_, err = scaleOf(c).Patch(t.Context(), apply, metav1.PatchOptions{})
	require.EqualError(t, err, "patch deployments.apps default/web/scale: apiclient: a server-side apply needs a field manager")
	_, err = scaleOf(c).Apply(t.Context(), map[string]any{"metadata": map[string]any{"name": "db"}}, metav1.ApplyOptions{FieldManager: "leat"})
	require.ErrorContains(t, err, `apply deployments.apps default/web/scale: apiclient: name is "db" in the object and "web" in the call`)
	require.Empty(t, got.Method, "nothing was sent")
}

// TestDryRunsChangeNothing does all operations of a subresource as dry runs.
func TestDryRunsChangeNothing(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		ctx, dry := t.Context(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		for r, object := range map[api.Resource]any{
			podResource: newPod("web"), deployments: newDeployment(),
			serviceAccounts: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}},
		} {
			must.Get(s.Create(r, object))(t)
		}
		before := s.ResourceVersion()

		scale, err := scaleOf(c).Patch(ctx, patchOf(t, map[string]any{"spec": map[string]any{"replicas": 7}}), metav1.PatchOptions{DryRun: dry.DryRun})
		require.NoError(t, err)
		require.EqualValues(t, 7, scale.Spec.Replicas, "a dry run returns the result")
		_, err = apiclient.Subresource[*policyv1.Eviction, *metav1.Status](c, podResource, web, "eviction").
			Create(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, dry)
		require.NoError(t, err)
		_, err = apiclient.Subresource[*corev1.Binding, *metav1.Status](c, podResource, web, "binding").
			Create(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, dry)
		require.NoError(t, err)
		_, err = apiclient.Subresource[*authenticationv1.TokenRequest, *authenticationv1.TokenRequest](c, serviceAccounts, web, "token").
			Create(ctx, &authenticationv1.TokenRequest{}, dry)
		require.NoError(t, err)
		pod := newPod("web")
		pod.Status.Phase = corev1.PodRunning
		must.Get(apiclient.NewTyped[*corev1.Pod](c, podResource, "").UpdateStatus(ctx, pod, metav1.UpdateOptions{DryRun: dry.DryRun}))(t)
		require.Equal(t, before, s.ResourceVersion())
	})
}

// TestFieldManagersAreRecorded writes a status with two managers. The second must force fields of the first.
func TestFieldManagersAreRecorded(t *testing.T) {
	withServer(t, testserver.Options{ManagedFields: true}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		must.Get(s.Create(podResource, newPod("web")))(t)
		view := apiclient.NewPartial[*corev1.Pod](c, podResource, "default")
		status := func(manager, phase string, force bool) (*corev1.Pod, error) {
			o := apiclient.ApplyOptions{Subresource: "status"}
			o.FieldManager, o.Force = manager, force
			return view.Apply(t.Context(), web, map[string]any{"status": map[string]any{"phase": phase}}, o)
		}
		pod := must.Get(status("kubelet", "Running", false))(t)
		require.Equal(t, corev1.PodRunning, pod.Status.Phase)
		first := pod.ManagedFields[0]
		require.Equal(t, "kubelet Apply status", first.Manager+" "+string(first.Operation)+" "+first.Subresource)

		_, err := status("other", "Failed", false)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		tries := 0
		err = apiclient.RetryOnConflict(t.Context(), apiclient.ConflictOptions{}, func(context.Context) error {
			tries++
			_, err := status("other", "Failed", false)
			return err
		})
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
		require.Equal(t, 1, tries, "a conflict about the owner of a field is not repeated")
		pod = must.Get(status("other", "Failed", true))(t)
		require.Equal(t, corev1.PodFailed, pod.Status.Phase)

		o := apiclient.PatchOptions{Subresource: "status"}
		o.FieldManager = "patcher"
		pod = must.Get(view.Patch(t.Context(), web, patchOf(t, map[string]any{"status": map[string]any{"reason": "Because"}}), o))(t)
		managers := map[string]string{}
		for _, m := range pod.ManagedFields {
			managers[m.Manager] = m.Subresource
		}
		require.Equal(t, "status", managers["patcher"])
	})
}

// TestStrictFieldValidation has a server that refuses a duplicate field.
func TestStrictFieldValidation(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		twice := apiclient.Subresource[*doubled, *corev1.Pod](c, podResource, web, "status")
		must.Get(s.Create(podResource, newPod("web")))(t)
		_, err := twice.Update(t.Context(), &doubled{}, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
		require.ErrorContains(t, err, `strict decoding error: duplicate field "status.phase"`)
		pod := must.Get(twice.Update(t.Context(), &doubled{}, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationIgnore}))(t)
		require.Equal(t, corev1.PodRunning, pod.Status.Phase, "the last one wins")
	})
}

// doubled encodes a member of its status twice.
type doubled struct{}

func (*doubled) MarshalJSON() ([]byte, error) {
	return []byte(`{"metadata":{"name":"web","namespace":"default"},"status":{"phase":"Pending","phase":"Running"}}`), nil
}
