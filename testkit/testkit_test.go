package testkit_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

var (
	pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	web  = api.Key{Namespace: "default", Name: "web"}
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
}

// starter sets the phase of each pod to Running, and repeats that once an hour.
type starter struct {
	pods *informer.Informer[*corev1.Pod]
	live *apiclient.TypedClient[*corev1.Pod]
	gone []string
}

func (s *starter) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	pod, ok := s.pods.Cache().Get(key)
	if !ok {
		s.gone = append(s.gone, key.Name)
		return controller.Result{}, nil
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	_, err := s.live.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return controller.Result{RequeueAfter: time.Hour}, err
}

// run is a program with one controller.
func run(k *testkit.Kit, s *starter) func(context.Context) error {
	return func(ctx context.Context) error {
		s.live = apiclient.NewTyped[*corev1.Pod](k.Client, pods, "")
		s.pods = informer.New(s.live, informer.Options[*corev1.Pod]{Logger: k.Logger})
		c := controller.New("starter", s, controller.Options{Logger: k.Logger})
		c.Watch(controller.For(s.pods))
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return s.pods.Run(ctx) })
		g.Go(func() error { return c.Run(ctx) })
		return g.Wait()
	}
}

func phase(k *testkit.Kit) corev1.PodPhase {
	return testkit.Get[*corev1.Pod](k, pods, web).Status.Phase
}

func TestAController(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(run(k, &starter{}))
		testkit.Create(k, pods, pod())
		require.Equal(t, corev1.PodRunning, phase(k))
		require.Len(t, testkit.List[*corev1.Pod](k, pods, "default"), 1)
		require.Empty(t, k.Errors())

		testkit.Edit(k, pods, web, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
		require.Equal(t, corev1.PodRunning, phase(k))
	})
}

func TestLostEvents(t *testing.T) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{ImmediateDeletion: true}}, func(k *testkit.Kit) {
		var s starter
		k.Start(run(k, &s))
		testkit.Create(k, pods, pod())
		k.LoseEvents(func() { testkit.Delete(k, pods, web) })
		require.Equal(t, []string{"web"}, s.gone)
		require.False(t, testkit.Has(k, pods, web))
	})
}

func TestAConflictOnTheNextStatusUpdate(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(run(k, &starter{}))
		k.Fail("update", "pods/status", 1, 409)
		testkit.Create(k, pods, pod())
		require.Equal(t, corev1.PodPhase(""), phase(k))
		require.Len(t, k.Errors(), 1)
		require.Contains(t, k.Errors()[0], "conflict")
		k.NextRequest(time.Minute)
		require.Equal(t, corev1.PodRunning, phase(k))
		require.Equal(t, 3, k.Requests("update", "pods/status"), "the conflict, its repetition, and the reconcile of that change")
	})
}

func TestTheNextDeadline(t *testing.T) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{BookmarkInterval: -1}}, func(k *testkit.Kit) {
		k.Start(run(k, &starter{}))
		testkit.Create(k, pods, pod())
		for k.Requests("update", "pods/status") < 3 {
			k.NextRequest(2 * time.Hour) // the reconcile after an hour, and the watches before it
		}
	})
}

func TestAServerThatRestarts(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		p := k.Start(run(k, &starter{}))
		k.Restart(time.Minute)
		k.Pass(2 * time.Minute)
		p.Stop()
		k.Start(run(k, &starter{}))
		testkit.Create(k, pods, pod())
		require.Equal(t, corev1.PodRunning, phase(k))
	})
}

func TestAProgramThatFails(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		want := errors.New("no disk")
		p := k.Start(func(context.Context) error { return want })
		require.Equal(t, want, p.Wait())
	})
}

func TestEventReasons(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		for name, reason := range map[string]string{"a": "Started", "b": "Started", "c": "Killed"} {
			testkit.Create(k, api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"}, Reason: reason,
			})
		}
		testkit.Create(k, api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"},
			Regarding:  corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"}, Reason: "Pulled",
		})
		require.Equal(t, []string{"Killed", "Pulled", "Started"}, testkit.EventReasons(k, "Pod"))
		require.Empty(t, testkit.EventReasons(k, "Node"))
	})
}

// misuses are tests that must fail, each with the text that it prints.
var misuses = map[string]struct {
	test   func(*testing.T)
	prints string
}{
	"a program that ends before the test": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) { k.Start(func(context.Context) error { return nil }) })
	}, "testkit: the program ended before the test did"},
	"a program that ends with an error": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
			k.Start(func(ctx context.Context) error {
				<-ctx.Done()
				return errors.New("no disk")
			})
		})
	}, "testkit: the program ended with an error: no disk"},
	"a goroutine that is left": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
			k.Start(func(ctx context.Context) error {
				go func() { select {} }()
				<-ctx.Done()
				return nil
			})
		})
	}, "deadlock: main bubble goroutine has exited but blocked goroutines remain"},
	"a fault that does not happen": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) { k.Fail("update", "pods/status", 2, 409) })
	}, "testkit: the failed update of pods/status happened 0 times and not 2"},
	"a LoseEvents without a change": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) { k.LoseEvents(func() {}) })
	}, "testkit: LoseEvents: no watch needed the lost events"},
	"no next request": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) { k.NextRequest(time.Hour) })
	}, "testkit: no request within 1h0m0s"},
	"an object that does not exist": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) { testkit.Get[*corev1.Pod](k, pods, web) })
	}, "testkit: get pods default/web: "},
	"a resource that does not exist": {func(t *testing.T) {
		testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
			require.False(k, testkit.Has(k, api.Resource{Version: "v1", Kind: "Pod", Plural: "pod", Namespaced: true}, web))
		})
	}, "testkit: get pod default/web: testserver: pod is not served"},
}

// TestMisuse runs each misuse in its own process, because it fails.
func TestMisuse(t *testing.T) {
	if name := os.Getenv("TESTKIT_MISUSE"); name != "" {
		misuses[name].test(t)
		return
	}
	for name, m := range misuses {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMisuse$")
			cmd.Env = append(os.Environ(), "TESTKIT_MISUSE="+name)
			output, err := cmd.CombinedOutput()
			require.Error(t, err, "%s", output)
			require.Contains(t, string(output), m.prints)
		})
	}
}

// TestFrom runs tests with forks of one server.
func TestFrom(t *testing.T) {
	base := testserver.New(testserver.Options{})
	for range 2 {
		testkit.Run(t, testkit.Options{From: base}, func(k *testkit.Kit) {
			testkit.Create(k, pods, pod())
			require.True(k, testkit.Has(k, pods, web))
		})
	}
	all, err := base.List(pods, "")
	require.NoError(t, err)
	require.Empty(t, all)
}
