package training

import (
	"context"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var mnist = api.Key{Namespace: "lab", Name: "mnist"}

// world is the controller, its caches and a server in memory, in a bubble. A change of an object in a cache fails the
// test.
type world struct {
	*testing.T
	server     *testserver.Server
	reconciler *reconciler
	reports    []controller.Report // one worker writes them
	logs       *observer.ObservedLogs
}

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	inWorldWith(t, func(*reconciler) {}, test)
}

// inWorldWith is inWorld with a change of the reconciler before it runs.
func inWorldWith(t *testing.T, change func(*reconciler), test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		w := &world{T: t, server: testserver.New(testserver.Options{}), logs: logs}
		w.server.Register(job.Resource)
		client, err := apiclient.New(apiclient.Config{Host: w.server.URL(), Transport: w.server.Client().Transport})
		require.NoError(t, err)
		p, err := program.New(program.Options{Name: "trainingjob", Client: client, Logger: zap.New(core)})
		require.NoError(t, err)
		o := Options{
			Client:     client,
			Jobs:       program.Typed(p, job.Resource, informerOptions[*job.TrainingJob](w)),
			Pods:       program.Partial(p, Pods, informerOptions[*plan.Pod](w)).Informer(),
			Services:   program.Partial(p, Services, informerOptions[*plan.Service](w)).Informer(),
			Controller: controller.Options{Logger: zap.New(core)},
		}
		o.Recorder, err = events.New(client, events.Options{Controller: "trainingjob-controller"})
		require.NoError(t, err)
		w.reconciler = newReconciler(o)
		change(w.reconciler)
		c, err := w.reconciler.controller(o)
		require.NoError(t, err)
		c.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { w.reports = append(w.reports, r.Report()) }})

		ctx, cancel := context.WithCancel(context.Background())
		runs := []func(context.Context) error{w.server.Run, p.Informers.Run, o.Recorder.Run, c.Run}
		ended := make(chan error)
		for _, run := range runs {
			go func() { ended <- run(ctx) }()
		}
		defer func() {
			cancel()
			for range runs {
				require.NoError(t, <-ended)
			}
		}()
		synctest.Wait()
		test(w)
	})
}

// informerOptions returns options with which a change of a cached object fails the test.
func informerOptions[T api.Object](w *world) informer.Options[T] {
	return informer.Options[T]{
		Mutations: informer.DetectMutations(func(m cache.Mutation) { w.Errorf("an object of a cache was changed: %s", m) }),
	}
}

// submit creates a job with a number of workers, after change has changed it.
func (w *world) submit(workers int32, change func(*job.TrainingJob)) {
	w.Helper()
	j := &job.TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: job.Resource.GroupVersion().String(), Kind: job.Resource.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: mnist.Namespace, Name: mnist.Name},
		Spec: job.Spec{Replicas: map[job.ReplicaType]job.ReplicaSpec{job.Worker: {
			Replicas: &workers, RestartPolicy: job.OnFailure,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: job.ContainerName, Image: "mnist:1"}}}},
		}}},
	}
	change(j)
	_, err := w.server.Create(job.Resource, j)
	require.NoError(w, err)
	synctest.Wait()
}

func asIs(*job.TrainingJob) {}

// edit changes an object of the server.
func (w *world) edit(r api.Resource, name string, change func(*unstructured.Unstructured)) {
	w.Helper()
	_, err := w.server.Edit(r, api.Key{Namespace: mnist.Namespace, Name: name}, change)
	require.NoError(w, err)
	synctest.Wait()
}

// touch changes a label of the job, so that it is reconciled.
func (w *world) touch() {
	w.Helper()
	w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"touched": time.Now().String() + u.GetResourceVersion()})
	})
}

func phase(p corev1.PodPhase) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"phase": string(p)} }
}

func (w *world) job() *job.TrainingJob {
	w.Helper()
	u, err := w.server.Get(job.Resource, mnist)
	require.NoError(w, err)
	raw, err := json.Marshal(u.Object)
	require.NoError(w, err)
	j := &job.TrainingJob{}
	require.NoError(w, json.Unmarshal(raw, j))
	return j
}

func (w *world) count(r api.Resource) int {
	w.Helper()
	all, err := w.server.List(r, "")
	require.NoError(w, err)
	return len(all)
}

// requests counts the requests of a verb for a resource, or for its status.
func (w *world) requests(verb string, r api.Resource) (n int) {
	for _, q := range w.server.Requests() {
		if q.Verb == verb && q.Resource == r.Plural {
			n++
		}
	}
	return n
}

// hold delays the watch events of a resource until it is removed.
func (w *world) hold(r api.Resource, frames watch.EventType) *testserver.Injection {
	return w.server.Inject(faults.Fault{
		Match:  faults.Match{Verbs: []string{"watch"}, Resource: r.String(), Frames: []watch.EventType{frames}},
		Effect: faults.Hold{},
	})
}

// pass lets time pass until everything that is due by then is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
