package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testkit/simulation"
)

// TestSimulation submits and deletes the job mnist, lets its Pods run and end, and breaks everything between the
// controller and the server. In the end, a job that has not finished has all its Pods, and a job whose chief has
// succeeded has succeeded.
func TestSimulation(t *testing.T) {
	phase := func(phase corev1.PodPhase, code int32) simulation.Change {
		return func(s *simulation.Simulation, r *rand.Rand) {
			pods := testkit.List[corev1.Pod](s.Kit, training.Pods, mnist.Namespace)
			if len(pods) == 0 {
				return
			}
			pod := pods[r.IntN(len(pods))]
			if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				return
			}
			(&world{Kit: s.Kit}).ends(strings.TrimPrefix(pod.Name, "mnist-"), phase, code)
		}
	}
	simulation.Run(t, simulation.Options{
		Prepare: func(s *simulation.Simulation) { (&world{Kit: s.Kit}).define() },
		Program: func(ctx context.Context, s *simulation.Simulation) error {
			return serve(ctx, (&world{Kit: s.Kit}).options(cli.Options{}, s.Logger))
		},
		Changes: map[string]simulation.Change{
			"submit": func(s *simulation.Simulation, _ *rand.Rand) {
				if !testkit.Has(s.Kit, job.Resource, mnist) {
					(&world{Kit: s.Kit}).submit(asIs)
				}
			},
			"delete": func(s *simulation.Simulation, _ *rand.Rand) {
				if testkit.Has(s.Kit, job.Resource, mnist) {
					testkit.Delete(s.Kit, job.Resource, mnist)
					collect(s.Kit)
				}
			},
			"run a pod":     phase(corev1.PodRunning, -1),
			"preempt a pod": phase(corev1.PodFailed, 137),
			"break a pod":   phase(corev1.PodFailed, 1),
			"finish a pod":  phase(corev1.PodSucceeded, 0),
		},
		Converged: converged,
		Resources: []api.Resource{job.Resource, training.Pods, training.Services},
		Seeds:     10,
	})
}

// collect does the work of the garbage collector after the deletion of the job.
func collect(k *testkit.Kit) {
	for _, r := range []api.Resource{training.Pods, training.Services} {
		for _, o := range testkit.List[metav1.PartialObjectMetadata](k, r, mnist.Namespace) {
			testkit.Delete(k, r, api.Key{Namespace: o.Namespace, Name: o.Name})
		}
	}
}

// converged checks the job and its Pods.
func converged(s *simulation.Simulation) error {
	pods := map[string]corev1.PodPhase{}
	for _, p := range testkit.List[corev1.Pod](s.Kit, training.Pods, mnist.Namespace) {
		pods[strings.TrimPrefix(p.Name, "mnist-")] = p.Status.Phase
	}
	if !testkit.Has(s.Kit, job.Resource, mnist) {
		return nil
	}
	j := testkit.Get[*job.TrainingJob](s.Kit, job.Resource, mnist)
	if pods["chief-0"] == corev1.PodSucceeded && !job.Finished(j) {
		return fmt.Errorf("the chief has succeeded, and the job has the conditions %v", j.Status.Conditions)
	}
	if !job.Finished(j) && len(pods) != 3 {
		return fmt.Errorf("a job that has not finished has the pods %v", pods)
	}
	return nil
}
