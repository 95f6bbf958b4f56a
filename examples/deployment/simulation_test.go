package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testkit/simulation"
)

// TestSimulation creates, scales, updates and deletes the Deployment web, deletes its Pods, and breaks everything
// between the controllers and the server. In the end, a Deployment has as many Pods as it wants, all of the last image
// and ready, and its status says so.
func TestSimulation(t *testing.T) {
	edit := func(change func(*appsv1.Deployment, *rand.Rand)) simulation.Change {
		return func(s *simulation.Simulation, r *rand.Rand) {
			if testkit.Has(s.Kit, workload.Deployments, web) {
				(&world{Kit: s.Kit}).edit(func(d *appsv1.Deployment) { change(d, r) })
			}
		}
	}
	simulation.Run(t, simulation.Options{
		Program: func(ctx context.Context, s *simulation.Simulation) error {
			o := options{Program: (&world{Kit: s.Kit}).newProgram(cli.Options{Workers: 3}, s.Logger)}
			o.parts = map[string]bool{partDeployment: true, partReplicaSet: true, partKubelet: true}
			o.kubelet.Start, o.kubelet.Stop = 3*time.Second, 2*time.Second
			return serve(ctx, o)
		},
		Changes: map[string]simulation.Change{
			"deploy": func(s *simulation.Simulation, _ *rand.Rand) {
				if !testkit.Has(s.Kit, workload.Deployments, web) {
					(&world{Kit: s.Kit}).deploy(asIs)
				}
			},
			"scale": edit(func(d *appsv1.Deployment, r *rand.Rand) { scale(r.Int32N(6))(d) }),
			"roll": edit(func(d *appsv1.Deployment, r *rand.Rand) {
				image(fmt.Sprintf("web:%d", r.IntN(4)))(d)
			}),
			"delete": func(s *simulation.Simulation, _ *rand.Rand) {
				if testkit.Has(s.Kit, workload.Deployments, web) {
					testkit.Delete(s.Kit, workload.Deployments, web)
					collect(s.Kit)
				}
			},
			"delete a pod": func(s *simulation.Simulation, r *rand.Rand) {
				if pods := (&world{Kit: s.Kit}).pods(); len(pods) > 0 {
					p := pods[r.IntN(len(pods))]
					testkit.Delete(s.Kit, workload.Pods, api.Key{Namespace: p.Namespace, Name: p.Name})
				}
			},
		},
		Converged: converged,
		Resources: []api.Resource{workload.Deployments, workload.ReplicaSets, workload.Pods},
		Seeds:     10,
	})
}

// collect does the work of the garbage collector after the deletion of the Deployment.
func collect(k *testkit.Kit) {
	for _, r := range []api.Resource{workload.ReplicaSets, workload.Pods} {
		for _, o := range testkit.List[metav1.PartialObjectMetadata](k, r, web.Namespace) {
			testkit.Delete(k, r, api.Key{Namespace: o.Namespace, Name: o.Name})
		}
	}
}

// kept returns the Pods that a garbage collector would keep. A controller with a cache that is behind may create a Pod
// for a ReplicaSet that is gone.
func kept(w *world) (pods []*corev1.Pod) {
	for _, p := range w.pods() {
		by := metav1.GetControllerOf(p)
		if by != nil && slices.ContainsFunc(testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, ""),
			func(s *appsv1.ReplicaSet) bool {
				return s.UID == by.UID && metav1.GetControllerOf(s).UID == w.deployment().UID
			}) {
			pods = append(pods, p)
		}
	}
	return pods
}

// converged checks the Deployment and its Pods.
func converged(s *simulation.Simulation) error {
	w := &world{Kit: s.Kit}
	if !testkit.Has(s.Kit, workload.Deployments, web) {
		return nil
	}
	d := w.deployment()
	want := d.Spec.Template.Spec.Containers[0].Image
	ready := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	pods := kept(w)
	for _, p := range pods {
		if image := p.Spec.Containers[0].Image; image != want || !slices.ContainsFunc(p.Status.Conditions, ready) {
			return fmt.Errorf("the pod %s of %s is %s and has the conditions %v", p.Name, image, p.Status.Phase, p.Status.Conditions)
		}
	}
	if n := len(pods); n != int(*d.Spec.Replicas) || int(d.Status.ReadyReplicas) != n || int(d.Status.UpdatedReplicas) != n {
		return fmt.Errorf("%d pods for %d replicas, and the status %+v", n, *d.Spec.Replicas, d.Status)
	}
	return nil
}
