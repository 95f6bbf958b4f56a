package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/program"
	"github.com/leatproject/leat/testserver"
)

var (
	events = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	web    = api.Key{Namespace: "shop", Name: "web"}
)

// world is the whole program against a server in memory, in a bubble.
type world struct {
	*testing.T
	server *testserver.Server
	client *apiclient.Client
	shown  *prometheus.Registry // of the program that was started last
	logs   *observer.ObservedLogs
	stop   func() // the program, and waits for its end
}

// inWorld runs a test with a server, and nothing else yet.
func inWorld(t *testing.T, o testserver.Options, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: testserver.New(o)}
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- w.server.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-served)
		}()
		var err error
		w.client, err = apiclient.New(apiclient.Config{Host: w.server.URL(), Transport: w.server.Client().Transport})
		require.NoError(t, err)
		defer func() {
			if w.stop != nil {
				w.stop()
			}
		}()
		test(w)
	})
}

// start starts the program: everything, unless parts are named.
func (w *world) start(parts ...string) {
	w.Helper()
	if len(parts) == 0 {
		parts = []string{partDeployment, partReplicaSet, partKubelet}
	}
	core, logs := observer.New(zapcore.InfoLevel)
	o := options{Program: w.program(program.Options{Workers: 3}, zap.New(core)), parts: map[string]bool{}}
	w.logs = logs
	o.kubelet.Start, o.kubelet.Stop = 3*time.Second, 2*time.Second
	for _, p := range parts {
		o.parts[p] = true
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, o) }()
	w.stop = func() {
		cancel()
		require.NoError(w, <-ended)
		w.stop = nil
	}
	synctest.Wait()
}

// program is one that is about to be started.
func (w *world) program(o program.Options, log *zap.Logger) *program.Program {
	w.Helper()
	p, err := program.New(o, log)
	require.NoError(w, err)
	p.Client = w.client
	w.shown = p.Registry
	return p
}

// pass lets time pass, and what is due then happen.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// deploy creates the Deployment web, changed as change says.
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
	_, err := w.server.Create(workload.Deployments, d)
	require.NoError(w, err)
	synctest.Wait()
}

func asIs(*appsv1.Deployment) {}

// edit changes the Deployment web.
func (w *world) edit(change func(*appsv1.Deployment)) {
	w.Helper()
	_, err := w.server.Edit(workload.Deployments, web, func(u *unstructured.Unstructured) {
		d := read[appsv1.Deployment](w, u)
		change(d)
		raw, err := json.Marshal(d)
		require.NoError(w, err)
		require.NoError(w, json.Unmarshal(raw, &u.Object))
	})
	require.NoError(w, err)
	synctest.Wait()
}

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func scale(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func read[T any](t require.TestingT, u *unstructured.Unstructured) *T {
	raw, err := json.Marshal(u.Object)
	require.NoError(t, err)
	object := new(T)
	require.NoError(t, json.Unmarshal(raw, object))
	return object
}

func list[T any](w *world, r api.Resource) []*T {
	w.Helper()
	all, err := w.server.List(r, "")
	require.NoError(w, err)
	var objects []*T
	for _, u := range all {
		objects = append(objects, read[T](w, u))
	}
	return objects
}

func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	u, err := w.server.Get(workload.Deployments, web)
	require.NoError(w, err)
	return read[appsv1.Deployment](w, u)
}

// sets are the ReplicaSets by their revision: "1: 4/4 web:1" has four Pods that are available, of four.
func (w *world) sets() []string {
	w.Helper()
	var lines []string
	for _, s := range list[appsv1.ReplicaSet](w, workload.ReplicaSets) {
		lines = append(lines, fmt.Sprintf("%s: %d/%d %s", s.Annotations["deployment.kubernetes.io/revision"],
			s.Status.AvailableReplicas, *s.Spec.Replicas, s.Spec.Template.Spec.Containers[0].Image))
	}
	slices.Sort(lines)
	return lines
}

func (w *world) pods() []*corev1.Pod { return list[corev1.Pod](w, workload.Pods) }

// condition is "True NewReplicaSetAvailable", or what else the condition says.
func (w *world) condition(kind appsv1.DeploymentConditionType) string {
	w.Helper()
	for _, c := range w.deployment().Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// told are the reasons of the Events about an object, sorted.
func (w *world) told(kind string) []string {
	w.Helper()
	var reasons []string
	for _, e := range list[corev1.Event](w, events) {
		if e.InvolvedObject.Kind == kind {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// failures are the failed reconciles that were logged.
func (w *world) failures() []string {
	var lines []string
	for _, e := range w.logs.All() {
		if e.Level >= zapcore.ErrorLevel {
			lines = append(lines, e.Message+": "+fmt.Sprint(e.ContextMap()["err"]))
		}
	}
	return lines
}

func (w *world) requireContains(lines []string, text string) {
	w.Helper()
	require.True(w, slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) }), "no %q in %q", text, lines)
}
