package cluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}},
			},
		},
	}
}

// Clients write protobuf when they ask for it, and get it in answers and watches.
func TestClientGoWithItsDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{})
		config := c.Config()
		config.ContentType = "application/vnd.kubernetes.protobuf"
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		deployments := client.AppsV1().Deployments("default")
		events := must.Get(deployments.Watch(ctx, metav1.ListOptions{}))(t)
		defer events.Stop()

		created := must.Get(deployments.Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		require.Equal(t, int32(1), *created.Spec.Replicas, "a default")
		require.Equal(t, corev1.RestartPolicyAlways, created.Spec.Template.Spec.RestartPolicy, "a default")
		require.Equal(t, int64(1), created.Generation)
		event := <-events.ResultChan()
		require.Equal(t, watch.Added, event.Type)
		require.Equal(t, created, event.Object)

		list := must.Get(deployments.List(ctx, metav1.ListOptions{}))(t)
		require.Equal(t, []appsv1.Deployment{*created}, list.Items)

		created.Spec.Template.Labels = map[string]string{"app": "other"}
		_, err = deployments.Update(ctx, created, metav1.UpdateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "`selector` does not match template `labels`")
	})
}

// The storage rejects new objects with a version, after validation, and a dry run does not reach the storage.
func TestCreateWithAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{})
		deployments := kubernetes.NewForConfigOrDie(c.Config()).AppsV1().Deployments("default")
		d := deployment("web")
		for version, message := range map[string]string{
			"7": "resourceVersion should not be set on objects to be created", "0": "", "text": "",
		} {
			d.ResourceVersion, d.Name = version, "web-"+version
			_, err := deployments.Create(t.Context(), d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			require.NoError(t, err)
			_, err = deployments.Create(t.Context(), d, metav1.CreateOptions{})
			if message == "" {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, message)
			d := d.DeepCopy()
			d.Spec.Template.Spec.Containers = nil
			_, err = deployments.Create(t.Context(), d, metav1.CreateOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
		}
	})
}
