package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv1ac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/testserver/cluster"
)

func owners(all []metav1.ManagedFieldsEntry) map[string]string {
	out := map[string]string{}
	for _, e := range all {
		out[e.Manager+" "+string(e.Operation)+" "+e.Subresource] = e.FieldsV1.String()
	}
	return out
}

// TestManagedFields holds the owners of fields through the verbs of a client.
func TestManagedFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		deployments := client.AppsV1().Deployments("default")
		labels := map[string]string{"app": "web"}
		config := func(image string) *appsv1ac.DeploymentApplyConfiguration {
			return appsv1ac.Deployment("web", "default").WithSpec(appsv1ac.DeploymentSpec().
				WithReplicas(2).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
					corev1ac.Container().WithName("main").WithImage(image)))))
		}
		applied, err := deployments.Apply(ctx, config("one"), metav1.ApplyOptions{FieldManager: "me"})
		require.NoError(t, err)
		require.Len(t, applied.ManagedFields, 1)
		require.NotContains(t, applied.ManagedFields[0].FieldsV1.String(), "f:strategy", "a default has no owner")
		again, err := deployments.Apply(ctx, config("one"), metav1.ApplyOptions{FieldManager: "me"})
		require.NoError(t, err)
		require.Equal(t, applied, again)
		_, err = deployments.Apply(ctx, config("two"), metav1.ApplyOptions{FieldManager: "other"})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "me": .spec.template.spec.containers[name="main"].image`)

		_, err = deployments.UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
		}, metav1.UpdateOptions{FieldManager: "scaler"})
		require.NoError(t, err)
		patched, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}`), metav1.PatchOptions{FieldManager: "patcher"})
		require.NoError(t, err)
		require.Len(t, patched.Spec.Template.Spec.Containers, 2)
		all := owners(patched.ManagedFields)
		require.Equal(t, `{"f:spec":{"f:replicas":{}}}`, all["scaler Update scale"])
		require.NotContains(t, all["me Apply "], "f:replicas")
		require.Contains(t, all["patcher Update "], `k:{\"name\":\"side\"}`)

		patched.Status.Replicas = 5
		updated, err := deployments.UpdateStatus(ctx, patched, metav1.UpdateOptions{FieldManager: "controller"})
		require.NoError(t, err)
		require.Equal(t, `{"f:status":{"f:replicas":{}}}`, owners(updated.ManagedFields)["controller Update status"])
	})
}

// TestManagersOfScales holds who owns the replicas that writes to a Scale set.
func TestManagersOfScales(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		deployments := client.AppsV1().Deployments("default")
		_, err = deployments.Create(ctx, deployment("web"), metav1.CreateOptions{FieldManager: "creator"})
		require.NoError(t, err)
		scale := func(replicas int32) *autoscalingv1ac.ScaleApplyConfiguration {
			return autoscalingv1ac.Scale().WithName("web").WithNamespace("default").WithSpec(autoscalingv1ac.ScaleSpec().WithReplicas(replicas))
		}
		_, err = deployments.ApplyScale(ctx, "web", scale(4), metav1.ApplyOptions{FieldManager: "scaler"})
		require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "creator" using autoscaling/v1: .spec.replicas`)
		applied, err := deployments.ApplyScale(ctx, "web", scale(4), metav1.ApplyOptions{FieldManager: "scaler", Force: true})
		require.NoError(t, err)
		require.EqualValues(t, 4, applied.Spec.Replicas)
		web, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		all := owners(web.ManagedFields)
		require.Equal(t, `{"f:spec":{"f:replicas":{}}}`, all["scaler Apply scale"])
		require.NotContains(t, all["creator Update "], "f:replicas")

		_, err = deployments.Patch(ctx, "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":6}}`),
			metav1.PatchOptions{FieldManager: "patcher"}, "scale")
		require.NoError(t, err)
		web, err = deployments.Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.EqualValues(t, 6, *web.Spec.Replicas)
		for _, e := range web.ManagedFields {
			require.Equal(t, e.Subresource == "scale", e.Time == nil, "as in kube-apiserver, the entry of a Scale has no time")
		}
		require.NotContains(t, owners(web.ManagedFields), "scaler Apply scale")

		_, err = deployments.ApplyScale(ctx, "web", scale(-1), metav1.ApplyOptions{FieldManager: "patcher", Force: true})
		require.EqualError(t, err, `Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`)
		_, err = deployments.ApplyScale(ctx, "none", scale(1).WithName("none"), metav1.ApplyOptions{FieldManager: "patcher"})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// TestManagersOfNewObjects holds what belongs to the creator, besides what the request contains.
func TestManagersOfNewObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, o := t.Context(), metav1.CreateOptions{FieldManager: "creator"}
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		sample := deployment("web").Spec
		set, err := client.AppsV1().DaemonSets("default").Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: sample.Selector, Template: sample.Template},
		}, o)
		require.NoError(t, err)
		require.Contains(t, owners(set.ManagedFields)["creator Update "],
			`{"f:metadata":{"f:annotations":{".":{},"f:deprecated.daemonset.template.generation":{}}}`)

		now := metav1.Now()
		made, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &now}, Data: map[string]string{"k": "v"},
		}, o)
		require.NoError(t, err)
		require.Nil(t, made.DeletionTimestamp)
		require.Equal(t, `{"f:data":{".":{},"f:k":{}}}`, owners(made.ManagedFields)["creator Update "])

		_, err = client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot"}}, o)
		require.NoError(t, err)
		token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "bot", &authenticationv1.TokenRequest{}, o)
		require.NoError(t, err)
		require.Contains(t, owners(token.ManagedFields)["creator Update token"], "f:expirationSeconds")
	})
}

// TestFirstNamespacesHaveAManager compares the entries that the server writes at its start with those that field
// managers make.
func TestFirstNamespacesHaveAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		first, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		require.NoError(t, err)
		made, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}},
			metav1.CreateOptions{FieldManager: "kube-apiserver"})
		require.NoError(t, err)
		require.Equal(t, made.ManagedFields, first.ManagedFields)
	})
}

// TestAppliedNulls holds that a null and an empty map in a configuration are values, which have an owner and conflict.
func TestAppliedNulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		maps := client.CoreV1().ConfigMaps("default")
		apply := func(by, metadata string) (*corev1.ConfigMap, error) {
			return maps.Patch(ctx, "m", types.ApplyYAMLPatchType,
				[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":`+metadata+`}`), metav1.PatchOptions{FieldManager: by})
		}
		_, err = apply("one", `{"name":"m","labels":{"a":"b"},"creationTimestamp":null}`)
		require.NoError(t, err)
		_, err = apply("two", `{"name":"m","labels":{"a":null}}`)
		require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "one": .metadata.labels.a`)
		m, err := apply("two", `{"name":"m","annotations":{}}`)
		require.NoError(t, err)
		require.Equal(t, `{"f:metadata":{"f:annotations":{}}}`, owners(m.ManagedFields)["two Apply "])
		_, err = apply("three", `{"name":"m","annotations":null}`)
		require.EqualError(t, err, `Apply failed with 1 conflict: conflict with "two": .metadata.annotations`)
		for _, nameless := range []string{`{"name":null}`, `{"name":""}`} {
			_, err = apply("two", nameless)
			require.EqualError(t, err, "the name of the object (m based on URL) was undeterminable: name must be provided")
		}
	})
}

// TestAppliedAgain holds that a configuration that is applied again later writes nothing, also with a null for a field
// that the server sets.
func TestAppliedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config())
		require.NoError(t, err)
		apply := func() *corev1.ConfigMap {
			m, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), "m", types.ApplyYAMLPatchType,
				[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","creationTimestamp":null},"data":{"a":"b"}}`),
				metav1.PatchOptions{FieldManager: "me"})
			require.NoError(t, err)
			return m
		}
		first := apply()
		<-time.After(time.Minute) // of the bubble
		require.Equal(t, first, apply())
	})
}
