package controllermanager_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

var app = map[string]string{"app": "a"}

func template(image string, policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	grace := int64(1) // the namespace controller waits half of it before it looks again
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: app},
		Spec: corev1.PodSpec{
			RestartPolicy: policy, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "app", Image: image}},
		},
	}
}

func jobSpec(completions int32) batchv1.JobSpec {
	two := int32(2)
	return batchv1.JobSpec{
		Completions: &completions, Parallelism: &two,
		Template: corev1.PodTemplateSpec{Spec: template("app:1", corev1.RestartPolicyNever).Spec},
	}
}

func deployment(t *testing.T, namespace string, replicas int32) *appsv1.Deployment {
	t.Helper()
	d, err := client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: template("app:1", corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return d
}

func replicaSet(t *testing.T, namespace string, replicas int32) *appsv1.ReplicaSet {
	t.Helper()
	s, err := client.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: template("app:1", corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return s
}

func pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// waitForPods waits until the namespace has n pods that are ready and not being deleted, and no other ones.
func waitForPods(t *testing.T, namespace string, n int) []corev1.Pod {
	t.Helper()
	var list []corev1.Pod
	harness.Wait(t, "pods", func() error {
		list = pods(t, namespace)
		ready := slices.DeleteFunc(slices.Clone(list), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !isReady(p) })
		if len(ready) != n || len(list) != n {
			return fmt.Errorf("%d pods, %d ready; want %d", len(list), len(ready), n)
		}
		return nil
	})
	return list
}

func isReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
