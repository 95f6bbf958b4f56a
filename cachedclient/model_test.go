package cachedclient_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

const (
	modelSeeds   = 12
	modelOwners  = 3
	modelObjects = 3 // of each owner
	modelRounds  = 25
)

// lastWrite is the last write of a reconcile to an object.
type lastWrite struct {
	uid     types.UID
	version string // empty after a delete
}

// model is a simulation of reconciles, writes of another client, and faults of the watch.
type model struct {
	*rig
	plain   *cachedclient.Typed[*widget] // reads the cache without an overlay
	gate    *cachedclient.Gate
	orderly bool // events arrive in order; if they do not, the model makes no deletes, because a late event would restore the object

	mu     sync.Mutex // guards the field below
	newest map[api.Key]string

	overlaid atomic.Int64 // the number of reads that returned an overlay entry
}

// TestModel runs reconciles behind a gate. Meanwhile another client writes the same objects, and watches are delayed,
// closed and answered with 410. It checks three things: no reconcile reads a state from before its earlier writes; the
// overlay shows each write at once; and no reader of the overlay sees an older state after a newer one.
func TestModel(t *testing.T) {
	var waits, overlaid atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(modelSeeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := newModel(t, seed)
					m.run(seed)
					waits.Add(m.gate.Stats().Waits)
					overlaid.Add(m.overlaid.Load())
				})
			})
		}
	})
	require.Greater(t, waits.Load(), int64(modelSeeds), "too few reconciles waited")
	require.Greater(t, overlaid.Load(), int64(modelSeeds), "too few reads returned an overlay entry")
}

func newModel(t *testing.T, seed uint64) *model {
	r := build(t, setting{
		server: testserver.Options{Seed: seed},
		client: cachedclient.Options{Overlay: true, OverlayAge: 24 * time.Hour},
	})
	return &model{
		rig: r, plain: cachedclient.NewTyped(r.live, r.informer, cachedclient.Options{}), orderly: seed%4 != 0,
		gate:   cachedclient.NewGate(cachedclient.GateOptions{Timeout: 24 * time.Hour}),
		newest: map[api.Key]string{},
	}
}

func (m *model) run(seed uint64) {
	ctx, cancel := context.WithCancel(m.Context())
	var owners, others sync.WaitGroup
	for n := range modelOwners {
		owners.Go(func() { m.reconcile(ctx, n, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	others.Go(func() { m.injectFaults(ctx, rand.New(rand.NewPCG(seed, 100))) })
	others.Go(func() { m.writeAsOther(ctx, rand.New(rand.NewPCG(seed, 101))) })
	others.Go(func() { m.readAll(ctx) })
	owners.Wait()
	cancel()
	others.Wait()
	require.Zero(m, m.gate.Stats().TimedOut)
}

func pause(r *rand.Rand, most time.Duration) { <-time.After(time.Duration(r.Int64N(int64(most)))) }

func objectOf(owner, n int) api.Key {
	return api.Key{Namespace: "default", Name: fmt.Sprintf("w-%d-%d", owner, n)}
}

// reconcile runs all reconciles of one key.
func (m *model) reconcile(ctx context.Context, n int, r *rand.Rand) {
	key := api.Key{Namespace: "default", Name: fmt.Sprint("owner-", n)}
	written := map[api.Key]lastWrite{}
	for range modelRounds {
		pause(r, time.Second)
		for again := make(chan struct{}); !m.gate.Ready(key, func() { close(again) }); again = make(chan struct{}) {
			<-again
		}
		for object := range modelObjects {
			m.check(objectOf(n, object), written, m.plain)
		}
		for range 1 + r.IntN(3) {
			object := objectOf(n, r.IntN(modelObjects))
			m.write(m.gate.Begin(ctx, key), object, written, r)
			m.check(object, written, &m.rig.widgets.Partial)
		}
	}
}

// reader is a client with or without an overlay.
type reader interface {
	Peek(ctx context.Context, key api.Key) (*widget, error)
}

// check reads an object and requires the state that its owner wrote last, or a newer one.
func (m *model) check(key api.Key, written map[api.Key]lastWrite, from reader) {
	before, wrote := written[key]
	w, err := from.Peek(m.Context(), key)
	switch {
	case !wrote:
	case err != nil:
		require.True(m, apierrors.IsNotFound(err))
		require.True(m, before.version == "" || !older(m.informer.ResourceVersion(), before.version), "%v is missing, but was written", key)
	case before.version == "":
		require.NotEqual(m, before.uid, w.UID, "%v was deleted, but a read returns it", key)
	default:
		require.False(m, older(w.ResourceVersion, before.version), "a read returns %v at version %s, but it was written at %s", key, w.ResourceVersion, before.version)
	}
}

func older(a, b string) bool {
	order, ok := api.CompareVersions(a, b)
	return !ok || order < 0
}

// write makes one random change of an object that it reads with the overlay. A conflict with the other client is no
// failure.
func (m *model) write(ctx context.Context, key api.Key, written map[api.Key]lastWrite, r *rand.Rand) {
	w, err := m.widgets.Get(ctx, key)
	switch {
	case err != nil:
		w, err = m.widgets.Create(ctx, named(key.Name, r.Int64N(100)), metav1.CreateOptions{})
	case m.orderly && r.IntN(3) == 0:
		uid := w.UID
		if err = m.widgets.Delete(ctx, key, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err == nil {
			written[key] = lastWrite{uid: uid}
			return
		}
	case r.IntN(2) == 0:
		w.Spec.Size++
		w, err = m.widgets.Update(ctx, w, metav1.UpdateOptions{})
	default:
		patch := mustMerge(m, map[string]any{"spec": map[string]any{"size": r.Int64N(1000)}})
		w, err = m.widgets.Patch(ctx, key, patch, apiclient.PatchOptions{})
	}
	if err != nil {
		require.True(m, apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err), "%v", err)
		return
	}
	written[key] = lastWrite{w.UID, w.ResourceVersion}
}

// writeAsOther writes the same objects as another client.
func (m *model) writeAsOther(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(r, 2*time.Second)
		key := objectOf(r.IntN(modelOwners), r.IntN(modelObjects))
		switch n := r.IntN(4); {
		case n == 0 && m.orderly:
			_ = m.Server.Delete(widgets, key)
		case n == 1:
			_, _ = m.Server.Create(widgets, named(key.Name, 1))
		default:
			_, _ = m.Server.Edit(widgets, key, setSize(r.Int64N(1000)))
		}
	}
}

// injectFaults delays events, closes watches and expires resource versions. If the model is not orderly, it changes the
// order of events instead, which a correct server does not do. Also then, no write may be lost.
func (m *model) injectFaults(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(r, 2*time.Second)
		f := faults.Fault{Effect: faults.StallEvents{}}
		switch n := r.IntN(4); {
		case !m.orderly:
			f = faults.Fault{Match: faults.Match{Frames: []watch.EventType{watch.Modified}}, Effect: faults.Hold{}, Times: 1}
		case n == 0:
			f.Effect = faults.Disconnect{Abrupt: r.IntN(2) == 0}
		case n == 1:
			m.Server.Inject(faults.Fault{Effect: faults.Compact{}})
			f.Effect = faults.Disconnect{}
		}
		i := m.Server.Inject(f)
		pause(r, 3*time.Second)
		i.Remove()
	}
	m.Server.Heal()
}

// readAll reads all objects again and again, with Peek and with List.
func (m *model) readAll(ctx context.Context) {
	for ctx.Err() == nil {
		<-time.After(50 * time.Millisecond)
		for owner := range modelOwners {
			for n := range modelObjects {
				key := objectOf(owner, n)
				if w, err := m.widgets.Peek(m.Context(), key); err == nil {
					m.checkNotOlder(w)
					if cached, found := m.informer.Cache().Get(key); !found || !api.SameVersion(cached, w) {
						m.overlaid.Add(1)
					}
				}
			}
		}
		list := must.Get(m.widgets.List(m.Context(), cachedclient.ListOptions{Shared: true}))(m)
		for _, w := range list.Items {
			m.checkNotOlder(w)
		}
	}
}

// checkNotOlder fails if a read has returned a newer state of the object before.
func (m *model) checkNotOlder(w *widget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := api.KeyOf(w)
	if before, known := m.newest[key]; known {
		require.False(m, older(w.ResourceVersion, before), "reads returned %v at version %s, and then at %s", key, before, w.ResourceVersion)
	}
	m.newest[key] = w.ResourceVersion
}
