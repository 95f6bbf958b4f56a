package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// cached is a cached client of config maps, in a namespace of its own.
type cached struct {
	*cachedclient.Typed[*corev1.ConfigMap]
	follower *follower[*corev1.ConfigMap]
}

func newCached(t *testing.T, o cachedclient.Options, selector string) *cached {
	t.Helper()
	c := newCollection(t, configMaps, configMapBody)
	live := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, adminConfig()), configMaps, c.namespace)
	f := follow(t, "cached", c, live, informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: selector}})
	return &cached{Typed: cachedclient.NewTyped(live, f.Informer, o), follower: f}
}

func (c *cached) key(name string) api.Key {
	return api.Key{Namespace: c.follower.collection.namespace, Name: name}
}

func (c *cached) named(name string, labels labelSet) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.key(name).Namespace, Name: name, Labels: labels}}
}

// counter is a reconciler that increments a number in a config map as fast as possible.
type counter struct {
	*cached
	until     int
	conflicts atomic.Int64
	done      chan struct{}
}

func (c *counter) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	m, err := c.Get(ctx, key)
	if err != nil {
		return controller.Result{}, err
	}
	n, _ := strconv.Atoi(m.Data["n"])
	if n >= c.until {
		select {
		case <-c.done:
		default:
			close(c.done)
		}
		return controller.Result{}, nil
	}
	m.Data = map[string]string{"n": strconv.Itoa(n + 1)}
	if _, err = c.Update(ctx, m, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
		c.conflicts.Add(1)
		err = nil
	}
	return controller.Result{RequeueAfter: time.Nanosecond}, err
}

// TestGateBeforeARealServer has a reconciler that increments the number it reads from its cache. With a gate, the cache
// always shows its last write. Without a gate, it often does not.
func TestGateBeforeARealServer(t *testing.T) {
	for _, gated := range []bool{true, false} {
		t.Run(fmt.Sprint("gated=", gated), func(t *testing.T) {
			c := &counter{cached: newCached(t, cachedclient.Options{}, ""), until: 50, done: make(chan struct{})}
			gate := cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Minute})
			var r controller.Reconciler[api.Key] = c
			if gated {
				r = controller.Gated(r, controller.Gate[api.Key](gate))
			}
			engine := controller.New("counter", r, controller.Options{})
			engine.Watch(controller.For(c.follower.Informer))
			stop := fixture.Start(t, engine.Run)
			must.Get(c.Create(t.Context(), c.named("count", nil), metav1.CreateOptions{}))(t)
			select {
			case <-c.done:
			case <-time.After(patience):
				require.Fail(t, "it has not come to an end")
			}
			stop()
			if !gated {
				require.NotZero(t, c.conflicts.Load(), "nothing was to be gained by the gate")
				return
			}
			require.Zero(t, c.conflicts.Load())
			require.NotZero(t, gate.Stats().Waits)
			require.Zero(t, gate.Stats().TimedOut)
		})
	}
}

// TestOverlayBeforeARealServer reads each write back at once.
func TestOverlayBeforeARealServer(t *testing.T) {
	c := newCached(t, cachedclient.Options{Overlay: true}, "")
	names := func() (all []string) {
		list := must.Get(c.List(t.Context(), cachedclient.ListOptions{}))(t)
		for _, m := range list.Items {
			all = append(all, m.Name)
		}
		return all
	}
	for i := range 50 {
		name := fmt.Sprint("m-", i)
		must.Get(c.Create(t.Context(), c.named(name, nil), metav1.CreateOptions{}))(t)
		require.Contains(t, names(), name)
		changed := must.Get(apiclient.MergePatch(map[string]any{"data": map[string]any{"i": strconv.Itoa(i)}}))(t)
		must.Get(c.Patch(t.Context(), c.key(name), changed, apiclient.PatchOptions{}))(t)
		m := must.Get(c.Get(t.Context(), c.key(name)))(t)
		require.Equal(t, strconv.Itoa(i), m.Data["i"])
		if i%2 == 0 {
			require.NoError(t, c.Delete(t.Context(), c.key(name), metav1.DeleteOptions{}))
			require.NotContains(t, names(), name)
			require.True(t, apierrors.IsNotFound(must.Err(c.Get(t.Context(), c.key(name)))))
		}
	}
	require.NoError(t, c.follower.WaitFor(t.Context(), c.follower.collection.mark(t)))
	require.Len(t, names(), 26, "and so it is when the cache has caught up")
}

// TestGateWaitsForMatchingWrites writes an object that the informer's selector excludes, for which the gate does not
// wait, and deletes a collection, for which it does.
func TestGateWaitsForMatchingWrites(t *testing.T) {
	c := newCached(t, cachedclient.Options{}, "app=web")
	must.Get(c.List(t.Context(), cachedclient.ListOptions{}))(t)
	gate := cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Minute})
	owner := c.key("owner")
	ctx := gate.Begin(t.Context(), owner)
	ready := make(chan struct{})
	ask := func() bool { return gate.Ready(owner, func() { close(ready) }) }

	must.Get(c.Create(ctx, c.named("other", labelSet{"app": "other"}), metav1.CreateOptions{}))(t)
	require.True(t, ask())
	for i := range 20 {
		must.Get(c.Create(ctx, c.named(fmt.Sprint("m-", i), labelSet{"app": "web"}), metav1.CreateOptions{}))(t)
	}
	if !ask() {
		<-ready
		ready = make(chan struct{})
	}
	require.Equal(t, 20, c.follower.Cache().Len())

	require.NoError(t, c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}))
	if !ask() {
		<-ready
	}
	require.Zero(t, c.follower.Cache().Len())
	require.Zero(t, gate.Stats().TimedOut)
	must.Get(c.Live().Get(t.Context(), c.key("other"), metav1.GetOptions{}))(t)
}
