package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	autoscalingv1ac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

func owners(all []metav1.ManagedFieldsEntry) map[string]string {
	out := map[string]string{}
	for _, e := range all {
		out[e.Manager+" "+string(e.Operation)+" "+e.Subresource] = e.FieldsV1.String()
	}
	return out
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
		client := must.Get(kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config()))(t)
		sample := deployment("web").Spec
		set := must.Get(client.AppsV1().DaemonSets("default").Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: sample.Selector, Template: sample.Template},
		}, o))(t)
		require.Contains(t, owners(set.ManagedFields)["creator Update "],
			`{"f:metadata":{"f:annotations":{".":{},"f:deprecated.daemonset.template.generation":{}}}`)

		now := metav1.Now()
		made := must.Get(client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &now}, Data: map[string]string{"k": "v"},
		}, o))(t)
		require.Nil(t, made.DeletionTimestamp)
		require.Equal(t, `{"f:data":{".":{},"f:k":{}}}`, owners(made.ManagedFields)["creator Update "])

		must.Get(client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot"}}, o))(t)
		token := must.Get(client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "bot", &authenticationv1.TokenRequest{}, o))(t)
		require.Contains(t, owners(token.ManagedFields)["creator Update token"], "f:expirationSeconds")
	})
}

// TestFirstNamespacesHaveAManager compares the entries that the server writes at its start with those that field
// managers make.
func TestFirstNamespacesHaveAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client := must.Get(kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config()))(t)
		first := must.Get(client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}))(t)
		made := must.Get(client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}},
			metav1.CreateOptions{FieldManager: "kube-apiserver"}))(t)
		require.Equal(t, made.ManagedFields, first.ManagedFields)
	})
}

// TestAppliedAgain holds that a configuration that is applied again later writes nothing, also with a null for a field
// that the server sets.
func TestAppliedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := must.Get(kubernetes.NewForConfig(cluster.Start(t, cluster.Options{}).Config()))(t)
		apply := func() *corev1.ConfigMap {
			m := must.Get(client.CoreV1().ConfigMaps("default").Patch(t.Context(), "m", types.ApplyYAMLPatchType,
				[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","creationTimestamp":null},"data":{"a":"b"}}`),
				metav1.PatchOptions{FieldManager: "me"}))(t)
			return m
		}
		first := apply()
		<-time.After(time.Minute) // of the bubble
		require.Equal(t, first, apply())
	})
}
