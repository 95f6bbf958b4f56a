package packed_test

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var pods = fixture.Pods

// object is what the model needs of a type.
type object interface {
	api.Object
	GetLabels() map[string]string
	SetAnnotations(map[string]string)
}

// replica is one informer with everything that users see of it.
type replica[T object] struct {
	informer *informer.Informer[T]
	byLabel  *cache.Index[T, string]
	byName   *cache.Index[T, string] // added late

	mu     sync.Mutex // guards the field below
	events map[string][]string
}

func newReplica[T object](t *testing.T, lw api.ListerWatcher[T], o informer.Options[T]) *replica[T] {
	r := &replica[T]{events: map[string][]string{}}
	r.informer = informer.New(lw, o)
	r.informer.Trace(informer.Trace{
		MayBlock: true,
		Change:   func(c informer.TracedChange) { r.note("batch", show(c.Change)) },
		Batch: func(b informer.TracedBatch) {
			s := r.informer.Snapshot()
			r.note("batch", fmt.Sprint(b.Objects, b.InitialList, s.ResourceVersion(), s.Len()))
		},
	})
	r.byLabel = informer.AddIndex(r.informer, func(o T) []string { return []string{o.GetLabels()["app"]} })
	r.subscribe(t, "early", informer.HandlerOptions{})
	r.subscribe(t, "resynced", informer.HandlerOptions{ResyncPeriod: 10 * time.Minute})
	r.subscribe(t, "identity", informer.HandlerOptions{IdentityOnly: true})
	fixture.Start(t, r.informer.Run)
	return r
}

func (r *replica[T]) note(to, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[to] = append(r.events[to], event)
}

func (r *replica[T]) subscribe(t *testing.T, name string, o informer.HandlerOptions) informer.Registration {
	reg, err := r.informer.Subscribe(func(c api.Change[T]) {
		if name == "identity" {
			r.note(name, fmt.Sprint(c.Type, api.KeyOf(c.Object), c.Object.GetUID(), c.Object.GetResourceVersion()))
			return
		}
		r.note(name, show(c))
	}, o)
	require.NoError(t, err)
	return reg
}

func show[T any](c api.Change[T]) string { return c.At.String() + " " + text(c) }

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// state is everything that readers see.
func (r *replica[T]) state() []string {
	s := r.informer.Snapshot()
	lines := []string{s.ResourceVersion(), fmt.Sprint(s.Len()), r.informer.ResourceVersion()}
	for key, o := range s.All() {
		again, found := r.informer.Cache().Get(key)
		uid, version, known := s.Identity(key)
		lines = append(lines, fmt.Sprint(key, found, uid, version, known), text(o), text(again))
	}
	for _, o := range s.List() {
		lines = append(lines, text(o))
	}
	lines = append(lines, fmt.Sprint(s.Get(api.Key{Name: "missing"})))
	for _, idx := range []*cache.Index[T, string]{r.byLabel, r.byName} {
		if idx == nil {
			continue
		}
		lines = append(lines, fmt.Sprint(slices.Sorted(idx.Values())))
		for _, v := range slices.Sorted(idx.Values()) {
			lines = append(lines, fmt.Sprint(v, idx.Len(v), idx.Keys(v), idx.Panics()))
			for key, o := range idx.In(s, v) {
				lines = append(lines, key.String(), text(o))
			}
			lines = append(lines, text(idx.ByIndex(v)))
		}
	}
	status := r.informer.Status()
	status.Handlers, status.Name = nil, ""
	return append(lines, status.String())
}

// undecodable returns the objects that could not be decoded, in an order.
func (r *replica[T]) undecodable() (all []string) {
	for _, e := range r.informer.Undecodable() {
		all = append(all, e.Error())
	}
	slices.Sort(all)
	return all
}

// flatten is a compression for tests: DEFLATE with a dictionary of samples.
func flatten(samples [][]byte) (encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error), err error) {
	dict := bytes.Join(samples, nil)
	dict = dict[max(0, len(dict)-4<<10):] // each object loads it again
	// A new writer costs a megabyte, and most of the time of the test.
	writers := sync.Pool{New: func() any {
		w, _ := flate.NewWriterDict(io.Discard, flate.BestSpeed, dict)
		return w
	}}
	encode = func(dst, src []byte) []byte {
		w := writers.Get().(*flate.Writer)
		defer writers.Put(w)
		b := bytes.NewBuffer(dst)
		w.Reset(b)
		_, _ = w.Write(src)
		_ = w.Close()
		return b.Bytes()
	}
	readers := sync.Pool{New: func() any { return flate.NewReader(nil) }}
	decode = func(dst, src []byte) ([]byte, error) {
		r := readers.Get().(io.Reader)
		defer readers.Put(r)
		if err := r.(flate.Resetter).Reset(bytes.NewReader(src), dict); err != nil {
			return dst, err
		}
		b := bytes.NewBuffer(dst)
		_, err := b.ReadFrom(r)
		return b.Bytes(), err
	}
	return encode, decode, nil
}

// runModel runs random operations on a test server with two informers.
func runModel[T object](t *testing.T, seed uint64, protobuf, transform bool, hold informer.Holding[T], source func(api.ListerWatcher[T]) api.ListerWatcher[T]) {
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		random, server := rand.New(rand.NewPCG(seed, 1)), f.Server
		var wrap func(http.RoundTripper) http.RoundTripper
		if protobuf {
			wrap = listerwatchertest.Protobuf
		}
		connect := func() api.ListerWatcher[T] { return source(apiclient.NewPartial[T](f.Connect(wrap), pods, "")) }
		w := churn{t: t, server: server, random: random}
		for range 100 {
			w.step()
		}
		o := informer.Options[T]{}
		o.Rand = func() float64 { return 0.5 }
		if transform {
			o.Transform = func(object T) (T, error) {
				if object.GetLabels()["app"] == "app-3" {
					return object, fmt.Errorf("not wanted")
				}
				object.SetAnnotations(map[string]string{"transformed": object.GetName()})
				return object, nil
			}
		}
		whole := newReplica(t, connect(), o)
		o.Hold = hold
		other := newReplica(t, connect(), o)
		compare := func() {
			synctest.Wait()
			require.Equal(t, whole.state(), other.state())
			require.Equal(t, whole.events, other.events)
			clear(whole.events)
			clear(other.events)
			require.Equal(t, whole.undecodable(), other.undecodable())
		}
		compare()
		var before *cache.Snapshot[T]
		var frozen string
		for round := range 12 {
			for range 1 + random.IntN(30) {
				w.step()
				synctest.Wait() // otherwise a disconnection meets the two at different events
			}
			switch random.IntN(5) {
			case 0:
				server.Inject(faults.Fault{Effect: faults.Disconnect{}})
			case 1:
				server.Inject(faults.Fault{Effect: faults.Compact{}})
				server.Inject(faults.Fault{Effect: faults.Disconnect{}})
			case 2:
				<-time.After(20 * time.Minute)
			case 3:
				name := fmt.Sprint("late ", round)
				whole.subscribe(t, name, informer.HandlerOptions{Coalesce: true})
				other.subscribe(t, name, informer.HandlerOptions{Coalesce: true})
			}
			if round == 6 {
				whole.byName = informer.AddIndex(whole.informer, func(o T) []string { return []string{o.GetName(), "all"} })
				other.byName = informer.AddIndex(other.informer, func(o T) []string { return []string{o.GetName(), "all"} })
			}
			<-time.After(2 * time.Minute) // the relists are over
			compare()
			if before != nil {
				require.Equal(t, frozen, text(before.List()), "a snapshot changed")
			}
			before = other.informer.Snapshot()
			frozen = text(before.List())
			require.NoError(t, other.informer.WaitFor(t.Context(), before.ResourceVersion()))
			for _, o := range before.List() {
				o.SetAnnotations(map[string]string{"changed": "by the reader"}) // which owns it
			}
		}
		require.True(t, other.informer.Snapshot().Copies())
		require.False(t, whole.informer.Snapshot().Copies())
	})
}

// churn changes a server.
type churn struct {
	t      *testing.T
	server *testserver.Server
	random *rand.Rand
}

func (w churn) step() {
	name := fmt.Sprint("pod-", w.random.IntN(40))
	key := api.Key{Namespace: "default", Name: name}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name,
		Labels:        map[string]string{"app": fmt.Sprint("app-", w.random.IntN(5))},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}},
	}}
	pod.Spec.NodeName = fmt.Sprint("node-", w.random.IntN(10))
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/image:v1"}}
	pod.Status.Phase = corev1.PodRunning
	switch _, missing := w.server.Get(pods, key); {
	case missing != nil:
		must.Get(w.server.Create(pods, pod))(w.t)
	case w.random.IntN(4) == 0:
		require.NoError(w.t, w.server.Delete(pods, key))
	default:
		must.Get(w.server.Update(pods, pod))(w.t)
	}
}

func asIs[T any](lw api.ListerWatcher[T]) api.ListerWatcher[T] { return lw }

// foreign hides that a source is a client of apiclient.
type foreign[T any] struct{ api.ListerWatcher[T] }

func hidden[T any](lw api.ListerWatcher[T]) api.ListerWatcher[T] { return foreign[T]{lw} }

var seeds = flag.Uint64("seeds", 1, "number of runs of each kind")

// TestPackedInformerIsLikeAWholeOne runs the same operations against two informers, and requires the same answers and
// the same notifications.
func TestPackedInformerIsLikeAWholeOne(t *testing.T) {
	for seed := range *seeds {
		for _, protobuf := range []bool{true, false} {
			for _, transform := range []bool{true, false} {
				name := fmt.Sprintf("%d protobuf=%v transform=%v ", seed, protobuf, transform)
				t.Run(name+"bytes", func(t *testing.T) {
					runModel(t, seed, protobuf, transform, packed.Bytes[*corev1.Pod](), asIs)
				})
				t.Run(name+"coded", func(t *testing.T) {
					runModel(t, seed, protobuf, transform, packed.CodedAfter[*corev1.Pod](4<<10, flatten), asIs)
				})
				t.Run(name+"foreign", func(t *testing.T) {
					runModel(t, seed, protobuf, transform, packed.Bytes[*corev1.Pod](), hidden)
				})
			}
		}
		t.Run(fmt.Sprint(seed, " unstructured"), func(t *testing.T) {
			runModel(t, seed, false, false, packed.CodedAfter[*unstructured.Unstructured](4<<10, flatten), asIs)
		})
	}
}
