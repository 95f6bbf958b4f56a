package rollout

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/examples/deployment/workload"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// newDeployment returns a Deployment with a number of replicas, maxSurge and maxUnavailable.
func newDeployment(replicas, surge, unavailable int32) *appsv1.Deployment {
	s, u := intstr.FromInt32(surge), intstr.FromInt32(unavailable)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d", Generation: 1, Annotations: map[string]string{}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u},
			},
			Template: template("new"),
		},
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// set returns a ReplicaSet with an image, a revision, a size and available Pods. Its age follows from the revision. Its
// annotations are those of the Deployment's current sizes.
func set(d *appsv1.Deployment, image string, revision, size, available int32) *appsv1.ReplicaSet {
	s := newSet(d)
	s.Name, s.UID = image, types.UID("uid-"+image)
	s.Spec.Template = template(image)
	s.Spec.Template.Labels[hashLabel] = image
	s.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(revision)*time.Minute - time.Hour))
	s.Spec.Replicas = &size
	s.Annotations = map[string]string{revisionAnnotation: strconv.Itoa(int(revision))}
	b, _ := budgetOf(d)
	note(s, replicas(d), replicas(d)+b.surge)
	s.Generation = 1
	s.Status = appsv1.ReplicaSetStatus{
		ObservedGeneration: 1, Replicas: size, ReadyReplicas: available, AvailableReplicas: available, TerminatingReplicas: new(int32),
	}
	return s
}

func at(d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) observed {
	return observed{deployment: d, sets: sets, now: noon}
}

// lines returns the changes of a decision as text.
func (d decision) lines() []string {
	lines := []string{}
	for _, c := range d.changes {
		switch {
		case c.was == nil:
			lines = append(lines, fmt.Sprintf("create %d", sizeOf(c.to)))
		case c.to == nil:
			lines = append(lines, "delete "+c.was.Name)
		case sizeOf(c.was) == sizeOf(c.to):
			lines = append(lines, "annotate "+c.to.Name)
		default:
			lines = append(lines, fmt.Sprintf("%s %d to %d", c.to.Name, sizeOf(c.was), sizeOf(c.to)))
		}
	}
	return lines
}

func is(s appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) string {
	c := find(s.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func podsOf(phase corev1.PodPhase, n int) []*workload.Pod {
	var all []*workload.Pod
	for range n {
		all = append(all, &workload.Pod{Status: workload.PodStatus{Phase: phase}})
	}
	return all
}

func timeOf(t *testing.T, c *appsv1.DeploymentCondition) time.Time {
	t.Helper()
	if c == nil {
		t.Fatal("no such condition")
	}
	return c.LastUpdateTime.Time
}
