package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

var web = api.Key{Namespace: "shop", Name: "web"}

// world is the whole program and a server in memory, in a bubble of fake time.
type world struct {
	*testkit.Kit
	program *testkit.Program
}

// inWorld runs a test with a server. The test starts the program.
func inWorld(t *testing.T, o testserver.Options, test func(*world)) {
	t.Helper()
	testkit.Run(t, testkit.Options{Server: o}, func(k *testkit.Kit) { test(&world{Kit: k}) })
}

// inProgram runs a test with a server and the program.
func inProgram(t *testing.T, test func(*world)) {
	t.Helper()
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start()
		test(w)
	})
}

// start starts the program with all parts, or with the named ones. After that, Logs has only the entries of this
// program.
func (w *world) start(parts ...string) {
	w.Helper()
	if len(parts) == 0 {
		parts = []string{partDeployment, partReplicaSet, partKubelet}
	}
	w.Logs().TakeAll()
	o := options{Program: w.newProgram(cli.Options{Workers: 3}, w.Logger), parts: map[string]bool{}}
	o.kubelet.Start, o.kubelet.Stop = 3*time.Second, 2*time.Second
	for _, p := range parts {
		o.parts[p] = true
	}
	w.program = w.Start(func(ctx context.Context) error { return serve(ctx, o) })
}

// newProgram returns a program that is not started yet.
func (w *world) newProgram(o cli.Options, log *zap.Logger) *program.Program {
	w.Helper()
	p, err := program.New(o.Apply(program.Options{Name: "deployment", Client: w.Client, Logger: cmp.Or(log, zap.NewNop())}))
	require.NoError(w, err)
	return p
}

// deploy creates the Deployment web after change has changed it.
func (w *world) deploy(change func(*appsv1.Deployment)) {
	w.Helper()
	n := int32(4)
	app := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}
	change(d)
	testkit.Create(w.Kit, workload.Deployments, d)
}

func asIs(*appsv1.Deployment) {}

// edit changes the Deployment web.
func (w *world) edit(change func(*appsv1.Deployment)) {
	w.Helper()
	testkit.Edit(w.Kit, workload.Deployments, web, change)
}

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func scale(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	return testkit.Get[*appsv1.Deployment](w.Kit, workload.Deployments, web)
}

// sets returns the ReplicaSets in the order of their revisions. "1: 4/4 web:1" is revision 1 with 4 available Pods of 4
// and the image web:1.
func (w *world) sets() []string {
	w.Helper()
	var lines []string
	for _, s := range testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, "") {
		lines = append(lines, fmt.Sprintf("%s: %d/%d %s", s.Annotations["deployment.kubernetes.io/revision"],
			s.Status.AvailableReplicas, *s.Spec.Replicas, s.Spec.Template.Spec.Containers[0].Image))
	}
	slices.Sort(lines)
	return lines
}

func (w *world) pods() []*corev1.Pod { return testkit.List[*corev1.Pod](w.Kit, workload.Pods, "") }

// condition returns status and reason of a condition, for example "True NewReplicaSetAvailable".
func (w *world) condition(kind appsv1.DeploymentConditionType) string {
	w.Helper()
	for _, c := range w.deployment().Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// events returns the reasons of the Events about objects of a kind, sorted.
func (w *world) events(kind string) []string {
	w.Helper()
	return testkit.EventReasons(w.Kit, kind)
}

func (w *world) requireContains(lines []string, text string) {
	w.Helper()
	require.True(w, slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) }), "no %q in %q", text, lines)
}
