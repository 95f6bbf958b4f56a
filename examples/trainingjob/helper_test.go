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

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/examples/program"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/testserver"
)

var (
	events = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	mnist  = api.Key{Namespace: "lab", Name: "mnist"}
)

// world is the whole program against a server in memory, in a bubble.
type world struct {
	*testing.T
	server *testserver.Server
	client *apiclient.Client
	logs   *observer.ObservedLogs
	counts *training.Counts // of the program that runs
	stop   func()           // the program, and waits for its end
}

// inWorld runs a test with a server that knows TrainingJobs, and nothing else yet. At its end no cache may have been changed
// by anybody but its informer.
func inWorld(t *testing.T, o testserver.Options, test func(*world)) {
	t.Helper()
	inEmptyWorld(t, o, func(w *world) {
		w.define()
		test(w)
	})
}

func inEmptyWorld(t *testing.T, o testserver.Options, test func(*world)) {
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

// define makes the server know TrainingJobs.
func (w *world) define() {
	w.Helper()
	var definition unstructured.Unstructured
	require.NoError(w, yaml.Unmarshal(job.Definition, &definition.Object))
	_, err := w.server.Create(job.Definitions, &definition)
	require.NoError(w, err)
	synctest.Wait()
}

// options are those of a program that works on one job at a time and logs where tests do.
func (w *world) options() options {
	w.Helper()
	p, err := program.New(program.Options{Workers: 1}, program.NewLogger(w.Output(), false))
	require.NoError(w, err)
	p.Client = w.client
	counts, err := countJobs(p.Registry)
	require.NoError(w, err)
	return options{
		Program: p, counts: counts,
		onMutation: func(m cache.Mutation) { w.Errorf("somebody changed what is in a cache: %s", m) },
	}
}

// start starts the program, with options changed.
func (w *world) start(change ...func(*options)) {
	w.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	o := w.options()
	w.logs, w.counts, o.Log = logs, o.counts, zap.New(core)
	for _, f := range change {
		f(&o)
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

// pass lets time pass, and what is due then happen.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// submit creates the job mnist, with a chief and two workers that are replaced when their exit code is worth it.
func (w *world) submit(change func(*job.TrainingJob)) {
	w.Helper()
	two := int32(2)
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: job.ContainerName, Image: "mnist:1"}}}}
	j := &job.TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: job.Resource.GroupVersion().String(), Kind: job.Resource.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: mnist.Namespace, Name: mnist.Name},
		Spec: job.Spec{Replicas: map[job.ReplicaType]job.ReplicaSpec{
			job.Chief:  {RestartPolicy: job.ExitCode, Template: template},
			job.Worker: {RestartPolicy: job.ExitCode, Template: template, Replicas: &two},
		}},
	}
	change(j)
	_, err := w.server.Create(job.Resource, j)
	require.NoError(w, err)
	synctest.Wait()
}

func asIs(*job.TrainingJob) {}

// edit changes the job mnist.
func (w *world) edit(change func(*job.TrainingJob)) {
	w.Helper()
	_, err := w.server.Edit(job.Resource, mnist, func(u *unstructured.Unstructured) {
		j := read[job.TrainingJob](w, u)
		change(j)
		raw, err := json.Marshal(j)
		require.NoError(w, err)
		u.Object = nil
		require.NoError(w, json.Unmarshal(raw, &u.Object))
	})
	require.NoError(w, err)
	synctest.Wait()
}

// ends has the Pod of a replica come to a phase and, unless it is negative, an exit code.
func (w *world) ends(name string, phase corev1.PodPhase, code int32) {
	w.Helper()
	_, err := w.server.Edit(training.Pods, api.Key{Namespace: mnist.Namespace, Name: "mnist-" + name}, func(u *unstructured.Unstructured) {
		status := map[string]any{"phase": string(phase)}
		if code >= 0 {
			status["containerStatuses"] = []any{map[string]any{
				"name": job.ContainerName, "state": map[string]any{"terminated": map[string]any{"exitCode": int64(code)}},
			}}
		}
		u.Object["status"] = status
	})
	require.NoError(w, err)
	synctest.Wait()
}

// run has the Pods of replicas run.
func (w *world) runs(names ...string) {
	w.Helper()
	for _, name := range names {
		w.ends(name, corev1.PodRunning, -1)
	}
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

func (w *world) job() *job.TrainingJob {
	w.Helper()
	u, err := w.server.Get(job.Resource, mnist)
	require.NoError(w, err)
	return read[job.TrainingJob](w, u)
}

// names are those of the objects of a resource, without that of their job.
func (w *world) names(r api.Resource) []string {
	w.Helper()
	names := []string{}
	for _, o := range list[metav1.PartialObjectMetadata](w, r) {
		names = append(names, strings.TrimPrefix(o.Name, "mnist-"))
	}
	return names
}

func (w *world) pods() []string     { return w.names(training.Pods) }
func (w *world) services() []string { return w.names(training.Services) }

// state is what is true of the job, in the order in which it became so first: "Created Running".
func (w *world) state() string {
	w.Helper()
	var all []string
	for _, c := range w.job().Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			all = append(all, c.Type)
		}
	}
	return strings.Join(all, " ")
}

// reason is that of a condition.
func (w *world) reason(kind string) string {
	w.Helper()
	for _, c := range w.job().Status.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

// told are the reasons of the Events about jobs, sorted.
func (w *world) told() []string {
	w.Helper()
	var reasons []string
	for _, e := range list[corev1.Event](w, events) {
		if e.InvolvedObject.Kind == job.Resource.Kind {
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

// requests counts those of a verb about a resource.
func (w *world) requests(verb string, r api.Resource) (n int) {
	for _, q := range w.server.Requests() {
		if q.Verb == verb && q.Resource == r.Plural && q.Subresource == "" {
			n++
		}
	}
	return n
}
