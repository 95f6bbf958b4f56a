package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

// world is a cluster with a client of client-go.
type world struct {
	*testing.T
	*cluster.Cluster
	kubernetes.Interface
	ctx context.Context
}

// inWorld runs test with a cluster on fake time.
func inWorld(t *testing.T, o cluster.Options, test func(world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, o)
		client := must.Get(kubernetes.NewForConfig(c.Config()))(t)
		synctest.Wait()
		test(world{t, c, client, t.Context()})
	})
}

// pass lets time pass.
func (w world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// pod returns a pod of an image.
func pod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func (w world) pod(name string) *corev1.Pod {
	w.Helper()
	p := must.Get(w.CoreV1().Pods("default").Get(w.ctx, name, metav1.GetOptions{}))(w)
	return p
}

func TestNamespacesAreDeletedWithTheirContents(t *testing.T) {
	inWorld(t, cluster.Options{}, func(w world) {
		_, err := w.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
		require.NoError(w, err)
		_, err = w.CoreV1().ConfigMaps("shop").Create(w.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"leat.example/f"}},
		}, metav1.CreateOptions{})
		require.NoError(w, err)
		require.NoError(w, w.CoreV1().Namespaces().Delete(w.ctx, "shop", metav1.DeleteOptions{}))
		w.pass(time.Second)
		ns, err := w.CoreV1().Namespaces().Get(w.ctx, "shop", metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, corev1.NamespaceTerminating, ns.Status.Phase)
		require.Len(w, ns.Status.Conditions, 5)
		_, err = w.CoreV1().ConfigMaps("shop").Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, metav1.CreateOptions{})
		require.True(w, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)
		_, err = w.CoreV1().ConfigMaps("shop").Patch(w.ctx, "a", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(w, err)
		w.pass(10 * time.Second)
		_, err = w.CoreV1().Namespaces().Get(w.ctx, "shop", metav1.GetOptions{})
		require.True(w, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestDependentsAreCollected(t *testing.T) {
	for _, o := range []cluster.Options{{}, {Lenient: true}} {
		inWorld(t, o, func(w world) {
			maps := w.CoreV1().ConfigMaps("default")
			owner, err := maps.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			require.NoError(w, err)
			_, err = maps.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: "b", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: owner.UID}},
			}}, metav1.CreateOptions{})
			require.NoError(w, err)
			w.Server.ForgetRequests()
			require.NoError(w, maps.Delete(w.ctx, "a", metav1.DeleteOptions{}))
			synctest.Wait()
			require.Len(w, w.Server.Requests(), 1, "the requests of the cluster are not in the log")
			_, err = maps.Get(w.ctx, "b", metav1.GetOptions{})
			require.True(w, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

// TestSwitchedOff has a cluster in which nothing happens by itself.
func TestSwitchedOff(t *testing.T) {
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true}}, func(w world) {
		maps := w.CoreV1().ConfigMaps("default")
		must.Get(maps.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "b", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "none"}},
		}}, metav1.CreateOptions{}))(w)
		require.NoError(w, w.CoreV1().Namespaces().Delete(w.ctx, "kube-node-lease", metav1.DeleteOptions{}))
		version := w.Server.ResourceVersion()
		w.pass(time.Hour)
		require.Equal(w, version, w.Server.ResourceVersion())
	})
}

func TestPodsRun(t *testing.T) {
	nodes := &cluster.Nodes{Count: 2, Start: 2 * time.Second, Complete: 5 * time.Second, Image: func(image string) cluster.Outcome {
		if image == "gone" {
			return cluster.Outcome{PullError: "not found"}
		}
		return cluster.Outcome{}
	}}
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{Nodes: nodes}}, func(w world) {
		_, err := w.CoreV1().Pods("default").Create(w.ctx, pod("web", "web:1"), metav1.CreateOptions{})
		require.NoError(w, err)
		job := pod("job", "job:1")
		job.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err = w.CoreV1().Pods("default").Create(w.ctx, job, metav1.CreateOptions{})
		require.NoError(w, err)
		_, err = w.CoreV1().Pods("default").Create(w.ctx, pod("gone", "gone"), metav1.CreateOptions{})
		require.NoError(w, err)
		w.pass(2 * time.Second)
		p := w.pod("web")
		require.Equal(w, corev1.PodRunning, p.Status.Phase)
		require.NotEmpty(w, p.Spec.NodeName)
		require.NotEmpty(w, p.Status.PodIP)
		require.Equal(w, corev1.PodQOSBestEffort, p.Status.QOSClass)
		w.pass(5 * time.Second)
		require.Equal(w, corev1.PodSucceeded, w.pod("job").Status.Phase)
		w.pass(5 * time.Second)
		require.Equal(w, "ImagePullBackOff", w.pod("gone").Status.ContainerStatuses[0].State.Waiting.Reason)
		require.NoError(w, w.CoreV1().Pods("default").Delete(w.ctx, "web", metav1.DeleteOptions{}))
		w.pass(time.Second)
		_, err = w.CoreV1().Pods("default").Get(w.ctx, "web", metav1.GetOptions{})
		require.True(w, apierrors.IsNotFound(err), "%v", err)
	})
}

// TestNewNodesAreTainted creates a node, which keeps the taint until something makes it ready.
func TestNewNodesAreTainted(t *testing.T) {
	notReady := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	for _, o := range []cluster.Options{{}, {Lenient: true}, {Behaviour: cluster.Behaviour{Nodes: &cluster.Nodes{Count: -1}}}} {
		inWorld(t, o, func(w world) {
			created := must.Get(w.CoreV1().Nodes().Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}))(w)
			require.Equal(w, notReady, created.Spec.Taints)
			must.Get(w.CoreV1().Pods("default").Create(w.ctx, pod("web", "web:1"), metav1.CreateOptions{}))(w)
			synctest.Wait()
			n := must.Get(w.CoreV1().Nodes().Get(w.ctx, "n", metav1.GetOptions{}))(w)
			if o.Behaviour.Nodes == nil {
				require.Equal(w, notReady, n.Spec.Taints)
				return
			}
			require.Empty(w, n.Spec.Taints)
			require.Equal(w, corev1.PodRunning, w.pod("web").Status.Phase)
		})
	}
}

// TestForegroundDeletion deletes a Job whose pod takes a while to terminate.
func TestForegroundDeletion(t *testing.T) {
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{Nodes: &cluster.Nodes{Stop: 3 * time.Second}}}, func(w world) {
		template := pod("", "job:1")
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		job, err := w.BatchV1().Jobs("default").Create(w.ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "job"},
			Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: template.Spec}},
		}, metav1.CreateOptions{})
		require.NoError(w, err)
		p := pod("job-1", "job:1")
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		_, err = w.CoreV1().Pods("default").Create(w.ctx, p, metav1.CreateOptions{})
		require.NoError(w, err)
		w.pass(time.Second)
		policy := metav1.DeletePropagationForeground
		require.NoError(w, w.BatchV1().Jobs("default").Delete(w.ctx, "job", metav1.DeleteOptions{PropagationPolicy: &policy}))
		w.pass(2 * time.Second)
		_, err = w.BatchV1().Jobs("default").Get(w.ctx, "job", metav1.GetOptions{})
		require.NoError(w, err, "the Job waits for its pod")
		w.pass(2 * time.Second)
		_, err = w.BatchV1().Jobs("default").Get(w.ctx, "job", metav1.GetOptions{})
		require.True(w, apierrors.IsNotFound(err), "%v", err)
	})
}

// TestRunAgain stops a cluster and starts it again: the behaviour goes on.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must.Get(cluster.New(cluster.Options{}))(t)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
			client, err := kubernetes.NewForConfig(c.Config())
			require.NoError(t, err)
			_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, client.CoreV1().Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}))
			<-time.After(time.Second)
			_, err = client.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			cancel()
			require.NoError(t, <-ended)
		}
	})
}

// TestDeploymentUnderABudget rolls a Deployment out, and evicts its pods as far as its budget allows.
func TestDeploymentUnderABudget(t *testing.T) {
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{Workloads: true, Nodes: &cluster.Nodes{Start: time.Second, Stop: time.Second}}}, func(w world) {
		d := deployment("web")
		three, most := int32(3), intstr.FromInt32(1)
		d.Spec.Replicas = &three
		_, err := w.AppsV1().Deployments("default").Create(w.ctx, d, metav1.CreateOptions{})
		require.NoError(w, err)
		_, err = w.PolicyV1().PodDisruptionBudgets("default").Create(w.ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: d.Spec.Selector},
		}, metav1.CreateOptions{})
		require.NoError(w, err)
		w.pass(time.Minute)
		d, err = w.AppsV1().Deployments("default").Get(w.ctx, "web", metav1.GetOptions{})
		require.NoError(w, err)
		require.EqualValues(w, 3, d.Status.AvailableReplicas)
		b, err := w.PolicyV1().PodDisruptionBudgets("default").Get(w.ctx, "web", metav1.GetOptions{})
		require.NoError(w, err)
		require.EqualValues(w, []int32{1, 3, 2, 3}, []int32{b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods})

		pods, err := w.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{})
		require.NoError(w, err)
		require.Len(w, pods.Items, 3)
		evict := func(i int) error {
			return w.CoreV1().Pods("default").EvictV1(w.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pods.Items[i].Name}})
		}
		require.NoError(w, evict(0))
		synctest.Wait()
		err = evict(1)
		require.True(w, apierrors.IsTooManyRequests(err), "%v", err)
		require.True(w, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), "%v", err)
		w.pass(time.Minute)
		require.NoError(w, evict(1), "another pod has replaced the first")

		require.NoError(w, w.AppsV1().Deployments("default").Delete(w.ctx, "web", metav1.DeleteOptions{}))
		w.pass(time.Minute)
		pods, err = w.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{})
		require.NoError(w, err)
		require.Empty(w, pods.Items)
	})
}

func TestServiceAccounts(t *testing.T) {
	inWorld(t, cluster.Options{}, func(w world) {
		must.Get(w.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))(w)
		synctest.Wait()
		must.Get(w.CoreV1().ServiceAccounts("shop").Get(w.ctx, "default", metav1.GetOptions{}))(w)
		must.Get(w.CoreV1().ConfigMaps("shop").Get(w.ctx, "kube-root-ca.crt", metav1.GetOptions{}))(w)
	})
}
