package apiclient_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

var serviceAccounts = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}

func scaleOf(c *apiclient.Client) *apiclient.Endpoint[*autoscalingv1.Scale, *autoscalingv1.Scale] {
	return apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](c, deployments, web, "scale")
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
			return must.Err(scaleOf(c).Get(ctx, metav1.GetOptions{ResourceVersion: "7"}))
		}, http.MethodGet, "resourceVersion=7", "", ""},
		"create": {func(ctx context.Context) error {
			return must.Err(scaleOf(c).Create(ctx, scale, metav1.CreateOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"}))
		}, http.MethodPost, options, "application/json", `"replicas":3`},
		"update": {func(ctx context.Context) error {
			return must.Err(scaleOf(c).Update(ctx, scale, metav1.UpdateOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"}))
		}, http.MethodPut, options, "application/json", `"replicas":3`},
		"patch": {func(ctx context.Context) error {
			return must.Err(scaleOf(c).Patch(ctx, patchOf(t, intent), metav1.PatchOptions{DryRun: all, FieldManager: "leat", FieldValidation: "Strict"}))
		}, http.MethodPatch, options, "application/merge-patch+json", `"replicas":3`},
		"apply as a patch": {func(ctx context.Context) error {
			return must.Err(scaleOf(c).Patch(ctx, apply, metav1.PatchOptions{FieldManager: "leat"}))
		}, http.MethodPatch, "fieldManager=leat", "application/apply-patch+yaml", `{"kind":"Scale"}`},
		"apply": {
			func(ctx context.Context) error {
				return must.Err(scaleOf(c).Apply(ctx, intent, metav1.ApplyOptions{DryRun: all, FieldManager: "leat", Force: true}))
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
