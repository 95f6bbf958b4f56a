package clientgo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

var pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func pod(name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "default", name
	for _, label := range labels {
		p.Labels = map[string]string{"app": label}
	}
	return p
}

func key(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

// run runs a test with a server that has the pods a and b. Its history is short, so that watches get a 410 soon.
func run(t *testing.T, test func(*testkit.Kit)) {
	t.Helper()
	testkit.Run(t, testkit.Options{Server: testserver.Options{}}, func(k *testkit.Kit) {
		testkit.Create(k, pods, pod("a", "web"))
		testkit.Create(k, pods, pod("b", "db"))
		test(k)
	})
}

// newInformer returns an informer of pods.
func newInformer(k *testkit.Kit, o clientgo.Options[*corev1.Pod]) cache.SharedIndexInformer {
	return clientgo.New(apiclient.NewTyped[*corev1.Pod](k.Client, pods, ""), o)
}

// start runs an informer until the test ends.
func start(k *testkit.Kit, i interface{ RunWithContext(context.Context) }) *testkit.Program {
	return k.Start(func(ctx context.Context) error {
		i.RunWithContext(klog.NewContext(ctx, klog.Logger{})) // without a log
		return nil
	})
}

// recorder is a handler that keeps its calls as lines.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last take, sorted.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	slices.Sort(lines)
	return lines
}

func name(obj any) string { return obj.(clientgo.Object).GetName() }

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	r.add("add %s initial=%v", name(obj), isInInitialList)
}

func (r *recorder) OnUpdate(old, obj any) {
	kind := "update"
	if old == obj {
		kind = "resync"
	}
	r.add("%s %s", kind, name(obj))
}

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.add("tombstone %s %s", tombstone.Key, name(tombstone.Obj))
		return
	}
	r.add("delete %s", name(obj))
}

// keys returns the keys of a store, sorted.
func keys(s cache.Store) []string {
	all := s.ListKeys()
	slices.Sort(all)
	return all
}

func mustAdd(t *testing.T, i cache.SharedInformer, h cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	return must.Get(i.AddEventHandler(h))(t)
}
