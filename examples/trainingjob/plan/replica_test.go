package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
)

func Example() {
	j := newJob(job.Worker)
	p := plan.Decide(plan.Observed{Job: j, Now: time.Now()})
	for _, r := range p.CreatePods {
		fmt.Println("create", plan.NewPod(j, r).Name)
	}
	for _, c := range p.Status.Conditions {
		fmt.Println(c.Type, c.Status)
	}
	// Output:
	// create mnist-worker-0
	// Created True
}

func TestNewPod(t *testing.T) {
	j := newJob(job.Worker)
	template := &corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "mnist", job.LabelIndex: "99"}
	template.Annotations = map[string]string{"a": "b"}
	template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		Containers: []corev1.Container{
			{Name: "sidecar", Image: "proxy:1"},
			{Name: job.ContainerName, Image: "mnist:1", Ports: []corev1.ContainerPort{{Name: job.PortName, ContainerPort: 5000}}},
		},
	}
	n := int32(2)
	j.Spec.Replicas[job.Worker] = job.ReplicaSpec{Replicas: &n, RestartPolicy: job.ExitCode, Template: *template}
	before := api.Clone(j)
	p := plan.NewPod(j, plan.Replica{Type: job.Worker, Index: 1})
	require.Equal(t, before, j, "the template is shared and must not change")
	require.Equal(t, "mnist-worker-1", p.Name)
	require.Equal(t, "lab", p.Namespace)
	require.Equal(t, map[string]string{
		"app": "mnist", job.LabelJob: "mnist", job.LabelType: "worker", job.LabelIndex: "1",
	}, p.Labels)
	require.Equal(t, map[string]string{"a": "b"}, p.Annotations)
	require.Equal(t, corev1.RestartPolicyNever, p.Spec.RestartPolicy)
	require.Empty(t, p.Spec.Containers[0].Env)
	require.Len(t, p.Spec.Containers[1].Ports, 1)
	require.Equal(t, []corev1.EnvVar{{
		Name:  "TF_CONFIG",
		Value: `{"cluster":{"worker":["mnist-worker-0.lab.svc:5000","mnist-worker-1.lab.svc:5000"]},"task":{"type":"worker","index":1},"environment":"cloud"}`,
	}}, p.Spec.Containers[1].Env)
	require.EqualValues(t, 5000, plan.NewService(j, plan.Replica{Type: job.Worker}).Spec.Ports[0].Port)
}

func TestConfigIsLeftOut(t *testing.T) {
	j := newJob(job.Worker)
	p := plan.NewPod(j, plan.Replica{Type: job.Worker})
	require.Empty(t, p.Spec.Containers[0].Env, "it is the only replica")
	require.EqualValues(t, job.DefaultPort, p.Spec.Containers[0].Ports[0].ContainerPort)

	scale(j, job.Worker, 2)
	own := []corev1.EnvVar{{Name: "TF_CONFIG", Value: "{}"}}
	j.Spec.Replicas[job.Worker].Template.Spec.Containers[0].Env = own
	require.Equal(t, own, plan.NewPod(j, plan.Replica{Type: job.Worker}).Spec.Containers[0].Env, "the template has a TF_CONFIG")
}

// configOf returns the TF_CONFIG of a replica.
func configOf(j *job.TrainingJob, t job.ReplicaType, index int) string {
	for _, e := range plan.NewPod(j, plan.Replica{Type: t, Index: index}).Spec.Containers[0].Env {
		if e.Name == "TF_CONFIG" {
			return e.Value
		}
	}
	return ""
}

// TestEvaluatorsAreNotInTheCluster has a job with replicas of every type except one.
func TestEvaluatorsAreNotInTheCluster(t *testing.T) {
	j := newJob(job.Master, job.PS, job.Worker, job.Evaluator)
	const cluster = `{"cluster":{"master":["mnist-master-0.lab.svc:2222"],"ps":["mnist-ps-0.lab.svc:2222"],"worker":["mnist-worker-0.lab.svc:2222"]},`
	for _, kind := range []job.ReplicaType{job.Master, job.PS, job.Worker, job.Evaluator} {
		require.JSONEq(t, fmt.Sprintf(`%s"task":{"type":%q,"index":0},"environment":"cloud"}`, cluster, kind), configOf(j, kind, 0))
	}
}

// TestDynamicWorkers changes the number of workers. The TF_CONFIG of existing Pods stays correct.
func TestDynamicWorkers(t *testing.T) {
	j := newJob(job.Chief, job.PS, job.Worker, job.Evaluator)
	scale(j, job.PS, 2)
	scale(j, job.Worker, 2)
	grown := api.Clone(j)
	scale(grown, job.Worker, 5)
	require.NotEqual(t, configOf(j, job.Worker, 1), configOf(grown, job.Worker, 1), "without dynamic workers, TF_CONFIG names all of them")

	j.Spec.EnableDynamicWorker, grown.Spec.EnableDynamicWorker = true, true
	const servers = `"ps":["mnist-ps-0.lab.svc:2222","mnist-ps-1.lab.svc:2222"]`
	for r, want := range map[plan.Replica]string{
		{Type: job.Worker, Index: 1}: `"worker":{"1":"mnist-worker-1.lab.svc:2222"},` + servers,
		{Type: job.PS, Index: 1}:     `"worker":{},"ps":["mnist-ps-1.lab.svc:2222"]`,
		{Type: job.Chief}:            `"worker":{},` + servers,
		{Type: job.Evaluator}:        `"worker":{},` + servers,
	} {
		want = fmt.Sprintf(`{"sparseCluster":{%s},"task":{"type":%q,"index":%d}}`, want, r.Type, r.Index)
		require.JSONEq(t, want, configOf(j, r.Type, r.Index))
		require.Equal(t, configOf(j, r.Type, r.Index), configOf(grown, r.Type, r.Index))
	}

	alone := newJob(job.Worker)
	require.Empty(t, configOf(alone, job.Worker, 0))
	alone.Spec.EnableDynamicWorker = true
	require.JSONEq(t, `{"sparseCluster":{"worker":{"0":"mnist-worker-0.lab.svc:2222"},"ps":[]},"task":{"type":"worker","index":0}}`,
		configOf(alone, job.Worker, 0), "other workers may come")
}

func TestPodPolicies(t *testing.T) {
	for policy, want := range map[job.RestartPolicy]corev1.RestartPolicy{
		job.Never: corev1.RestartPolicyNever, job.OnFailure: corev1.RestartPolicyOnFailure,
		job.Always: corev1.RestartPolicyAlways, job.ExitCode: corev1.RestartPolicyNever,
	} {
		j := newJob(job.Worker)
		change(j, job.Worker, 1, policy)
		require.Equal(t, want, plan.NewPod(j, plan.Replica{Type: job.Worker}).Spec.RestartPolicy, policy)
	}
}
