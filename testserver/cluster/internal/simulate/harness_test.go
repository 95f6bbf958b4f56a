package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/cluster/internal/simulate"
)

var (
	pods  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodes = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
)

// world is a server with simulated nodes.
type world struct{ *testkit.Kit }

func inWorld(t *testing.T, o simulate.Options, test func(world)) {
	t.Helper()
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(simulate.New(k.Client, o).Run)
		test(world{k})
	})
}

// create creates a pod with one container, after change has changed it.
func (w world) create(name string, change ...func(*corev1.Pod)) {
	w.Helper()
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(p)
	}
	testkit.Create(w.Kit, pods, p)
}

func key(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

func (w world) pod(name string) *corev1.Pod { return testkit.Get[*corev1.Pod](w.Kit, pods, key(name)) }

// delete deletes a pod over HTTP, so that it gets a grace period.
func (w world) delete(name string) {
	w.Helper()
	require.NoError(w, apiclient.NewPartial[*corev1.Pod](w.Client, pods, "").Delete(w.Context(), key(name), metav1.DeleteOptions{}))
	w.Idle()
}

// line describes a pod: "Running ready node-0 c:running/2" has the phase, the node, and each container with its
// restarts.
func (w world) line(name string) string {
	w.Helper()
	p := w.pod(name)
	parts := []string{string(p.Status.Phase)}
	if c := condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		parts = append(parts, "ready")
	}
	if p.Spec.NodeName != "" {
		parts = append(parts, p.Spec.NodeName)
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range all {
			state := "running"
			switch {
			case s.State.Waiting != nil:
				state = s.State.Waiting.Reason
			case s.State.Terminated != nil:
				state = fmt.Sprint(s.State.Terminated.Reason, " ", s.State.Terminated.ExitCode)
			}
			if s.RestartCount > 0 {
				state += fmt.Sprint("/", s.RestartCount)
			}
			parts = append(parts, s.Name+":"+state)
		}
	}
	return strings.Join(parts, " ")
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i, c := range p.Status.Conditions {
		if c.Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func image(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name }
}

func policy(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

func requests(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity(cpu)}
	}
}
