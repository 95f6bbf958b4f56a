package controllermanager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestDeployment rolls a Deployment out, to a second revision, and scales it.
func TestDeployment(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	deployment(t, namespace, 3)
	done := func(revision string, replicas int32) {
		t.Helper()
		harness.Wait(t, "the rollout", func() error {
			d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "d", metav1.GetOptions{})
			if err != nil {
				return err
			}
			s := d.Status
			if d.Annotations["deployment.kubernetes.io/revision"] != revision || s.ObservedGeneration != d.Generation ||
				s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas {
				return fmt.Errorf("revision %q, want %s: %+v", d.Annotations["deployment.kubernetes.io/revision"], revision, s)
			}
			return nil
		})
		waitForPods(t, namespace, int(replicas))
	}
	done("1", 3)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2"}]}}}}`)
	must.Get(client.AppsV1().Deployments(namespace).Patch(t.Context(), "d", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	done("2", 3)
	for _, p := range pods(t, namespace) {
		require.Equal(t, "app:2", p.Spec.Containers[0].Image)
	}
	sets := must.Get(client.AppsV1().ReplicaSets(namespace).List(t.Context(), metav1.ListOptions{}))(t)
	require.Len(t, sets.Items, 2, "the old ReplicaSet stays, for a way back")

	scale := must.Get(client.AppsV1().Deployments(namespace).GetScale(t.Context(), "d", metav1.GetOptions{}))(t)
	// As kubectl scale does: whatever version the controller has written meanwhile.
	scale.ResourceVersion, scale.Spec.Replicas = "", 1
	must.Get(client.AppsV1().Deployments(namespace).UpdateScale(t.Context(), "d", scale, metav1.UpdateOptions{}))(t)
	done("2", 1)
}

// TestRollbackWithoutProgress checks that a rollback whose Pods a quota refuses leaves the success of the last rollout
// in the condition Progressing, as the controller of examples/deployment does.
func TestRollbackWithoutProgress(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	deployment(t, namespace, 2)
	deployments := client.AppsV1().Deployments(namespace)
	wait := func(what string, done func(*appsv1.Deployment) bool) {
		t.Helper()
		harness.Wait(t, what, func() error {
			d, err := deployments.Get(t.Context(), "d", metav1.GetOptions{})
			if err == nil && (d.Status.ObservedGeneration != d.Generation || !done(d)) {
				err = fmt.Errorf("%+v", d.Status)
			}
			return err
		})
	}
	progressing := func(d *appsv1.Deployment) (c appsv1.DeploymentCondition) {
		for _, is := range d.Status.Conditions {
			if is.Type == appsv1.DeploymentProgressing {
				c = is
			}
		}
		return c
	}
	use := func(image string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image)
		must.Get(deployments.Patch(t.Context(), "d", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	}
	complete := func(d *appsv1.Deployment) bool {
		return d.Status.Replicas == 2 && d.Status.UpdatedReplicas == 2 && d.Status.AvailableReplicas == 2 && progressing(d).Reason == "NewReplicaSetAvailable"
	}
	wait("the first rollout", complete)
	use("app:2")
	wait("the second rollout", complete)
	waitForPods(t, namespace, 2)
	quotas := client.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Wait(t, "the quota", func() error {
		q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
		if used := q.Status.Used[corev1.ResourcePods]; err == nil && used.Value() != 2 {
			err = fmt.Errorf("%+v", q.Status)
		}
		return err
	})
	d := must.Get(deployments.Get(t.Context(), "d", metav1.GetOptions{}))(t)
	before := progressing(d)
	use("app:1")
	wait("a refused Pod", func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentReplicaFailure })
	})
	d = must.Get(deployments.Get(t.Context(), "d", metav1.GetOptions{}))(t)
	require.Equal(t, before, progressing(d))
}

// TestReplicaSet checks that a deleted pod is replaced, and a pod with other labels is released.
func TestReplicaSet(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	replicaSet(t, namespace, 3)
	before := waitForPods(t, namespace, 3)

	require.NoError(t, client.CoreV1().Pods(namespace).Delete(t.Context(), before[0].Name, metav1.DeleteOptions{}))
	harness.Wait(t, "the replacement", func() error {
		for _, p := range pods(t, namespace) {
			if p.Name == before[0].Name {
				return fmt.Errorf("%s is still there", p.Name)
			}
		}
		return nil
	})
	waitForPods(t, namespace, 3)

	patch := []byte(`{"metadata":{"labels":{"app":"other"}}}`)
	must.Get(client.CoreV1().Pods(namespace).Patch(t.Context(), before[1].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	harness.Wait(t, "the release", func() error {
		p, err := client.CoreV1().Pods(namespace).Get(t.Context(), before[1].Name, metav1.GetOptions{})
		if err == nil && len(p.OwnerReferences) > 0 {
			return fmt.Errorf("its owners are %v", p.OwnerReferences)
		}
		return err
	})
	waitForPods(t, namespace, 4)
}

// TestStatefulSet checks names, order and volume claims.
func TestStatefulSet(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	two := int32(2)
	storage := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}},
		},
	}
	_, err := client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &two, ServiceName: "s", Selector: &metav1.LabelSelector{MatchLabels: app},
			Template:             template("app:1", corev1.RestartPolicyAlways),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{storage},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	list := waitForPods(t, namespace, 2)
	names := []string{list[0].Name, list[1].Name}
	slices.Sort(names)
	require.Equal(t, []string{"s-0", "s-1"}, names)
	claims := must.Get(client.CoreV1().PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{}))(t)
	require.Len(t, claims.Items, 2)
	harness.Wait(t, "the status", func() error {
		s, err := client.AppsV1().StatefulSets(namespace).Get(t.Context(), "s", metav1.GetOptions{})
		if err == nil && (s.Status.ReadyReplicas != 2 || s.Status.CurrentRevision == "" || s.Status.UpdateRevision != s.Status.CurrentRevision) {
			return fmt.Errorf("%+v", s.Status)
		}
		return err
	})
}

// TestDaemonSet checks that the node gets a pod.
func TestDaemonSet(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	_, err := client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template("app:1", corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	nodes := must.Get(client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}))(t)
	require.NotEmpty(t, nodes.Items)
	waitForPods(t, namespace, len(nodes.Items))
	harness.Wait(t, "the status", func() error {
		d, err := client.AppsV1().DaemonSets(namespace).Get(t.Context(), "d", metav1.GetOptions{})
		if err == nil && int(d.Status.NumberAvailable) != len(nodes.Items) {
			return fmt.Errorf("%+v", d.Status)
		}
		return err
	})
}

// TestJob checks that a Job completes, and that it counts each pod once.
func TestJob(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	_, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: jobSpec(3)}, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Wait(t, "the Job", func() error {
		j, err := client.BatchV1().Jobs(namespace).Get(t.Context(), "j", metav1.GetOptions{})
		if err == nil && (j.Status.Succeeded != 3 || j.Status.CompletionTime == nil) {
			return fmt.Errorf("%+v", j.Status)
		}
		return err
	})
	list := pods(t, namespace)
	require.Len(t, list, 3)
	for _, p := range list {
		require.Empty(t, p.Finalizers, "the Job has counted %s", p.Name)
	}
}

// TestCronJob makes a CronJob miss its time, and checks that it starts one Job.
func TestCronJob(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	jobs := client.BatchV1().CronJobs(namespace)
	suspended := true
	c, err := jobs.Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", Suspend: &suspended, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec(1)},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
	must.Get(jobs.UpdateStatus(t.Context(), c, metav1.UpdateOptions{}))(t)
	must.Get(jobs.Patch(t.Context(), "c", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}))(t)
	harness.Wait(t, "the CronJob", func() error {
		c, err := jobs.Get(t.Context(), "c", metav1.GetOptions{})
		if err == nil && c.Status.LastSuccessfulTime == nil {
			return fmt.Errorf("%+v", c.Status)
		}
		return err
	})
	list := must.Get(client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{}))(t)
	require.NotEmpty(t, list.Items)
	require.Equal(t, "CronJob", metav1.GetControllerOf(&list.Items[0]).Kind)
}
