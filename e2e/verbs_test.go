package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestVerbs writes deployments with every verb, with answers in protobuf and JSON.
func TestVerbs(t *testing.T) {
	for name, noProtobuf := range map[string]bool{"protobuf": false, "JSON": true} {
		t.Run(name, func(t *testing.T) {
			config := adminConfig()
			config.DisableProtobuf = noProtobuf
			client := newClient(t, config)
			namespace := newCollection(t, deployments, deployBody).namespace
			exerciseVerbs(t, client, apiclient.NewTyped[*appsv1.Deployment](client, deployments, namespace), namespace)
		})
	}
}

func exerciseVerbs(t *testing.T, client *apiclient.Client, c *apiclient.TypedClient[*appsv1.Deployment], namespace string) {
	ctx := t.Context()
	key := api.Key{Namespace: namespace, Name: "web"}
	made := must.Get(c.Create(ctx, newDeployment("web"), metav1.CreateOptions{}))(t)
	require.NotEmpty(t, made.UID)
	require.Equal(t, int64(1), made.Generation)
	_, err := c.Create(ctx, newDeployment("web"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	_, err = c.Create(ctx, newDeployment("Not a name"), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = c.Get(ctx, api.Key{Name: "nobody"}, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	two := int32(2)
	changed := made.DeepCopy()
	changed.Spec.Replicas = &two
	changed = must.Get(c.Update(ctx, changed, metav1.UpdateOptions{}))(t)
	require.Equal(t, int64(2), changed.Generation)
	_, err = c.Update(ctx, made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)

	changed.Status.ObservedGeneration, changed.Status.Replicas = 2, 1
	changed.Spec.Replicas = new(int32) // an update of the status cannot change this
	changed = must.Get(c.UpdateStatus(ctx, changed, metav1.UpdateOptions{}))(t)
	require.Equal(t, int32(1), changed.Status.Replicas)
	require.Equal(t, two, *changed.Spec.Replicas)

	exercisePatches(t, c, key)
	exerciseScale(t, client, c, key)
	exerciseDelete(t, c, changed)
}

func newDeployment(name string) *appsv1.Deployment {
	labels := labelSet{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "first", Image: "registry.example/first:1"}}},
			},
		},
	}
}

func exercisePatches(t *testing.T, c *apiclient.TypedClient[*appsv1.Deployment], key api.Key) {
	t.Helper()
	type object = map[string]any
	containers := func(names ...any) object {
		return object{"spec": object{"template": object{"spec": object{"containers": names}}}}
	}
	merge := must.Get(apiclient.MergePatch(object{"metadata": object{"labels": object{"merge": "yes", "app": nil}}}))(t)
	strategic := must.Get(apiclient.StrategicPatch(containers(object{"name": "second", "image": "registry.example/second:1"})))(t)
	json, err := apiclient.JSONPatch(apiclient.JSONPatchOperation{Op: "test", Path: "/metadata/labels/merge", Value: "yes"},
		apiclient.JSONPatchOperation{Op: "replace", Path: "/metadata/labels/merge", Value: "no"})
	require.NoError(t, err)

	patched := must.Get(c.Patch(t.Context(), key, merge, apiclient.PatchOptions{}))(t)
	require.Equal(t, labelSet{"merge": "yes"}, patched.Labels)
	patched = must.Get(c.Patch(t.Context(), key, strategic, apiclient.PatchOptions{}))(t)
	require.Len(t, patched.Spec.Template.Spec.Containers, 2)
	patched = must.Get(c.Patch(t.Context(), key, json, apiclient.PatchOptions{}))(t)
	require.Equal(t, labelSet{"merge": "no"}, patched.Labels)
	_, err = c.Patch(t.Context(), key, json, apiclient.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "the test of a JSON patch passed: %v", err)

	mine := apiclient.ApplyOptions{FieldManager: "e2e"}
	patched = must.Get(c.Apply(t.Context(), key, object{"metadata": object{"labels": object{"applied": "yes"}}}, mine))(t)
	require.Equal(t, labelSet{"merge": "no", "applied": "yes"}, patched.Labels)
	patched = must.Get(c.Apply(t.Context(), key, object{}, mine))(t)
	require.Equal(t, labelSet{"merge": "no"}, patched.Labels, "what is not applied any more stays")
	foreign := object{"metadata": object{"labels": object{"merge": "mine"}}}
	_, err = c.Apply(t.Context(), key, foreign, mine)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	mine.Force = true
	patched = must.Get(c.Apply(t.Context(), key, foreign, mine))(t)
	require.Equal(t, labelSet{"merge": "mine"}, patched.Labels)
}

func exerciseScale(t *testing.T, client *apiclient.Client, c *apiclient.TypedClient[*appsv1.Deployment], key api.Key) {
	t.Helper()
	scale := apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](client, deployments, key, "scale")
	s := must.Get(scale.Get(t.Context(), metav1.GetOptions{}))(t)
	require.Equal(t, int32(2), s.Spec.Replicas)
	s.Spec.Replicas = 7
	s.TypeMeta = metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}
	must.Get(scale.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	scaled := must.Get(c.Get(t.Context(), key, metav1.GetOptions{}))(t)
	require.Equal(t, int32(7), *scaled.Spec.Replicas)
}

func exerciseDelete(t *testing.T, c *apiclient.TypedClient[*appsv1.Deployment], d *appsv1.Deployment) {
	t.Helper()
	key := api.KeyOf(d)
	err := c.Delete(t.Context(), key, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	foreground := metav1.DeletePropagationForeground
	require.NoError(t, c.Delete(t.Context(), key, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(d.UID)), PropagationPolicy: &foreground,
	}))
	dying := must.Get(c.Get(t.Context(), key, metav1.GetOptions{}))(t)
	require.NotNil(t, dying.DeletionTimestamp)
	require.Equal(t, []string{metav1.FinalizerDeleteDependents}, dying.Finalizers)

	for _, name := range []string{"one", "two", "three"} {
		other := newDeployment(name)
		other.Labels = labelSet{"name": name}
		must.Get(c.Create(t.Context(), other, metav1.CreateOptions{}))(t)
	}
	require.NoError(t, c.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "name in (one,two)"}))
	var left []string
	_, err = c.List(t.Context(), api.Options[*appsv1.Deployment]{ListOptions: metav1.ListOptions{LabelSelector: "name"}},
		func(d *appsv1.Deployment) error {
			left = append(left, d.Name)
			return nil
		})
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, left)
}

// TestKubeconfig connects with kubeconfigs that have a token or a client certificate, and finds resources by name.
func TestKubeconfig(t *testing.T) {
	widgets := customResource(t, "Widget")
	cert, key, err := server.ClientCertificate("somebody", "system:masters")
	require.NoError(t, err)
	withCertificate := adminConfig()
	withCertificate.BearerToken = apiclient.Secret{}
	withCertificate.TLS.CertData, withCertificate.TLS.KeyData = cert, apiclient.NewSecret(string(key))
	for name, config := range map[string]apiclient.Config{"token": adminConfig(), "certificate": withCertificate} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, kubeconfig.Write(file, config, "kube-system"))
			loaded, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: file})
			require.NoError(t, err)
			require.Equal(t, "kube-system", namespace)
			client := newClient(t, loaded)
			for query, want := range map[string]api.Resource{
				"pods": pods, "deployments.apps": deployments, "deployments": deployments, "widgets": widgets, "widgets.v1.e2e.leat.example": widgets,
			} {
				found, err := discovery.Lookup(t.Context(), client, query)
				require.NoError(t, err, query)
				require.Equal(t, want, found, query)
			}
			require.ErrorIs(t, must.Err(discovery.Lookup(t.Context(), client, "nonsense")), discovery.ErrUnknownResource)

			namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
			found, err := apiclient.NewPartial[*unstructured.Unstructured](client, namespaces, "").Get(t.Context(), api.Key{Name: namespace}, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "Namespace", found.GetKind())
		})
	}
}
