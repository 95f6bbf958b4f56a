package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

var (
	eventResource = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	mnist         = api.Key{Namespace: "lab", Name: "mnist"}
)

// world is the whole program and a server in memory, in a bubble of fake time.
type world struct {
	*testkit.Kit
	counts  *training.Counts // of the running program
	program *testkit.Program
}

// inWorld runs a test with a server that serves TrainingJobs. The test starts the program. At the end, only informers
// may have changed the caches.
func inWorld(t *testing.T, o testserver.Options, test func(*world)) {
	t.Helper()
	inEmptyWorld(t, o, func(w *world) {
		w.define()
		test(w)
	})
}

func inEmptyWorld(t *testing.T, o testserver.Options, test func(*world)) {
	t.Helper()
	testkit.Run(t, testkit.Options{Server: o}, func(k *testkit.Kit) { test(&world{Kit: k}) })
}

// define makes the server serve TrainingJobs.
func (w *world) define() {
	w.Helper()
	var definition unstructured.Unstructured
	require.NoError(w, yaml.Unmarshal(job.Definition, &definition.Object))
	testkit.Create(w.Kit, job.Definitions, &definition)
}

// output returns a logger that writes to the output of the test.
func (w *world) output() *zap.Logger { return cli.NewLogger(w.Output(), false) }

// options returns the options of a program with one worker and these settings, whose logs go to log.
func (w *world) options(o cli.Options, log *zap.Logger) options {
	w.Helper()
	o.Workers = 1
	p, err := program.New(o.Apply(program.Options{Name: name, Client: w.Client, Logger: log}))
	require.NoError(w, err)
	counts, err := countJobs(p.Registry)
	require.NoError(w, err)
	return options{
		Program: p, counts: counts,
		mutations: informer.DetectMutations(func(m cache.Mutation) { w.Errorf("an object of a cache was changed: %s", m) }),
	}
}

// inProgram runs a test with a server and the program.
func inProgram(t *testing.T, test func(*world)) {
	t.Helper()
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start()
		test(w)
	})
}

// start starts the program with changed options. After that, Logs has only the entries of this program.
func (w *world) start(change ...func(*options)) {
	w.Helper()
	w.startWith(cli.Options{}, change...)
}

// startWith is start with settings of the command line.
func (w *world) startWith(settings cli.Options, change ...func(*options)) {
	w.Helper()
	w.Logs().TakeAll()
	o := w.options(settings, w.Logger)
	w.counts = o.counts
	for _, f := range change {
		f(&o)
	}
	w.program = w.Start(func(ctx context.Context) error { return serve(ctx, o) })
}

// submit creates the job mnist with a chief and two workers. All have the restart policy ExitCode.
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
	testkit.Create(w.Kit, job.Resource, j)
}

func asIs(*job.TrainingJob) {}

// edit changes the job mnist.
func (w *world) edit(change func(*job.TrainingJob)) {
	w.Helper()
	testkit.Edit(w.Kit, job.Resource, mnist, change)
}

// ends sets the phase of a replica's Pod and, unless it is negative, the exit code.
func (w *world) ends(name string, phase corev1.PodPhase, code int32) {
	w.Helper()
	_, err := w.Server.Edit(training.Pods, api.Key{Namespace: mnist.Namespace, Name: "mnist-" + name}, func(u *unstructured.Unstructured) {
		status := map[string]any{"phase": string(phase)}
		if code >= 0 {
			status["containerStatuses"] = []any{map[string]any{
				"name": job.ContainerName, "state": map[string]any{"terminated": map[string]any{"exitCode": int64(code)}},
			}}
		}
		u.Object["status"] = status
	})
	require.NoError(w, err)
	w.Idle()
}

// runs sets the phase of the Pods of replicas to Running.
func (w *world) runs(names ...string) {
	w.Helper()
	for _, name := range names {
		w.ends(name, corev1.PodRunning, -1)
	}
}

func (w *world) job() *job.TrainingJob {
	w.Helper()
	return testkit.Get[*job.TrainingJob](w.Kit, job.Resource, mnist)
}

// names returns the names of the objects of a resource, without the prefix of their job.
func (w *world) names(r api.Resource) []string {
	w.Helper()
	names := []string{}
	for _, o := range testkit.List[metav1.PartialObjectMetadata](w.Kit, r, "") {
		names = append(names, strings.TrimPrefix(o.Name, "mnist-"))
	}
	return names
}

func (w *world) pods() []string     { return w.names(training.Pods) }
func (w *world) services() []string { return w.names(training.Services) }

// state returns the true conditions of the job, the oldest first: "Created Running".
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

// reason returns the reason of a condition.
func (w *world) reason(kind string) string {
	w.Helper()
	for _, c := range w.job().Status.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

// events returns the reasons of the Events about jobs, sorted.
func (w *world) events() []string {
	w.Helper()
	return testkit.EventReasons(w.Kit, job.Resource.Kind)
}
