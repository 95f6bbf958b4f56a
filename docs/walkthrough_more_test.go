package docs_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// stretch is the program of the walkthrough's second part. Two doors let a scene hold up one stage.
type stretch struct {
	t      *testing.T
	out    *trace.Printer
	server *testserver.Server
	pods   *trace.Informer[*walkedPod]
	batch  door // Run's goroutine, after each batch
	work   door // the worker, in the middle of each reconcile
}

// door is open until shut is called, and again after open.
type door struct{ closed atomic.Pointer[chan struct{}] }

func (d *door) shut() {
	wait := make(chan struct{})
	d.closed.Store(&wait)
}

func (d *door) open() { close(*d.closed.Swap(nil)) }

func (d *door) pass() {
	if wait := d.closed.Load(); wait != nil {
		<-*wait
	}
}

func (s *stretch) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	for _, cause := range controller.Causes(ctx) {
		s.out.Line("workqueue", key.String(), "because of %s, version %s", cause.Event, cause.Version)
	}
	pod, ok := s.pods.Cache().Get(key)
	s.work.pass()
	if ok {
		s.out.Line("reconcile", key.String(), "on node %q", pod.Spec.NodeName)
	} else {
		s.out.Line("reconcile", key.String(), "gone")
	}
	return controller.Result{}, nil
}

// scene takes the steps a millisecond apart, because trace tells batches from each other by their time.
func (s *stretch) scene(title string, steps ...func()) {
	s.out.Printf("%s\n", title)
	for _, step := range steps {
		<-time.After(time.Millisecond)
		step()
		synctest.Wait()
	}
}

var walkedKey = api.Key{Namespace: "default", Name: "web"}

func (s *stretch) create() {
	must.Get(s.server.Create(podResource, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: walkedKey.Namespace, Name: walkedKey.Name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}))(s.t)
}

func (s *stretch) move(node string) func() {
	return func() {
		_, err := s.server.Edit(podResource, walkedKey, func(pod *unstructured.Unstructured) {
			require.NoError(s.t, unstructured.SetNestedField(pod.Object, node, "spec", "nodeName"))
		})
		require.NoError(s.t, err)
	}
}

// walkFurther plays the scenes of walkthrough-more.md.
func walkFurther(t *testing.T, out *trace.Printer) {
	s := &stretch{t: t, out: out, server: testserver.New(testserver.Options{ImmediateDeletion: true, BookmarkInterval: -1})}
	client := must.Get(apiclient.New(apiclient.Config{Host: s.server.URL(), Transport: s.server.Client().Transport}))(t)
	s.pods = trace.NewInformer(out, apiclient.NewPartial[*walkedPod](client, podResource, ""), informer.Options[*walkedPod]{
		Handling: informer.Handling{ResyncPeriod: time.Minute}, Tuning: reflector.Tuning{
			MinWatchTimeout: time.Hour,
			Rand:            func() float64 { return 0 },
		},
	})
	s.pods.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { s.batch.pass() }})
	c := controller.New("walk", controller.Reconciler[api.Key](s), controller.Options{})
	c.Watch(controller.For(s.pods))
	serving, stop := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(serving)
	served, running := make(chan error, 1), make(chan error, 2)
	go func() { served <- s.server.Run(serving) }()
	for _, run := range []func(context.Context) error{s.pods.Run, c.Run} {
		go func() { running <- run(ctx) }()
	}
	synctest.Wait()

	s.scene("The Pod is created.", s.create)
	s.scene("A change comes while a worker has the key.",
		s.work.shut, s.move("node-1"), s.move("node-2"), s.work.open)
	s.scene("Two changes come while the informer and the worker are busy.",
		s.batch.shut, s.work.shut, s.move("node-3"), s.move("node-4"), s.move("node-5"), s.batch.open, s.work.open)
	s.scene("A second handler joins late.", func() {
		late := must.Get(s.pods.Subscribe(func(api.Change[*walkedPod]) {}, informer.HandlerOptions{}))(t)
		<-late.Synced()
		late.Remove()
	})
	s.scene("A minute passes.", func() { <-time.After(time.Minute) })
	s.scene("The connection breaks. The Pod is deleted, and the server forgets it.",
		func() { s.server.Inject(faults.Fault{Effect: faults.Outage{}}) },
		func() { require.NoError(t, s.server.Delete(podResource, walkedKey)) },
		func() { s.server.Inject(faults.Fault{Effect: faults.Compact{}}) },
		s.server.Heal,
		func() { <-time.After(30 * time.Second) })

	cancel()
	require.NoError(t, <-running)
	require.NoError(t, <-running)
	stop()
	require.NoError(t, <-served)
}

func TestWalkthroughMoreShowsTheTrace(t *testing.T) {
	page := must.Get(os.ReadFile("walkthrough-more.md"))(t)
	var shown strings.Builder
	for block := range strings.SplitSeq(string(page), "```") {
		if lines, ok := strings.CutPrefix(block, "text\n"); ok {
			shown.WriteString(lines)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var trail bytes.Buffer
		walkFurther(t, trace.To(&trail, nil))
		require.Equal(t, shown.String(), trail.String())
	})
}
