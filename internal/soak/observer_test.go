package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/reconcile/events"
)

// observer is a process that is never restarted.
type observer struct {
	*soak
	log      *zap.Logger
	client   *apiclient.Client
	factory  *factory.Factory
	mills    *factory.Share[*widget]
	parts    *informer.Informer[*widget] // over WebSocket
	recorder *events.Recorder
	metrics  *metrics.Metrics
	told     atomic.Int64 // notifications to all handlers
}

func newObserver(s *soak) *observer {
	o := &observer{soak: s, log: s.log.Named("observer"), client: s.client(nil, 0)}
	o.factory = factory.New(factory.Options{Logger: o.log})
	o.mills = o.share("")
	o.parts = informer.New(websocket.Watch(o.view(parts, "")), informerOptions(o.log))
	o.recorder = must.Get(events.New(o.client, events.Options{Controller: "leat.test/observer", Logger: o.log}))(s)
	o.metrics = must.Get(metrics.New(prometheus.NewRegistry()))(s)
	// This handler asks for resyncs because a handler that joins later gets none otherwise.
	must.Get(o.mills.Subscribe(func(api.Change[*widget]) { o.told.Add(1) },
		informer.HandlerOptions{Name: "resident", ResyncPeriod: time.Second}))(s)
	s.Cleanup(o.client.CloseIdleConnections)
	fixture.Start(s, fixture.All(o.factory.Run, o.parts.Run, o.recorder.Run))
	return o
}

func (o *observer) view(r api.Resource, namespace string) *apiclient.PartialClient[*widget] {
	return apiclient.NewPartial[*widget](o.client, r, namespace)
}

// share returns one more share of the informer of the mills of a namespace.
func (o *observer) share(namespace string) *factory.Share[*widget] {
	return must.Get(factory.Shared(o.factory, o.view(mills, namespace), informerOptions(o.log)))(o)
}

// record makes Events of objects that the recorder does not know. The recorder remembers 4,096 objects and as many
// series, so it is full after the first round.
func (o *observer) record(round int) {
	n := 100
	if round == 1 {
		n = 4500
	}
	for i := range n {
		require.NoError(o, poll(settleTimeout, func() error {
			if waiting := o.recorder.Stats().Waiting; waiting > 900 {
				return fmt.Errorf("soak: %d Events wait to be written", waiting)
			}
			return nil
		}))
		m := fixture.Named(namespaceOf(i), fmt.Sprintf("told-of-%d", i))
		m.UID = types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", round, i))
		o.recorder.Normal(mills, m, "Seen", "in round %d", round)
	}
}

// visitor is a handler, a share or an informer that leaves before the round ends.
type visitor struct {
	leave func()
	done  <-chan struct{} // closed when no call is in flight and nothing is left of it
}

// visitors come in one round. One goroutine uses them.
type visitors struct {
	*soak
	observer *observer
	over     chan struct{} // closed when the round settles: what is stuck goes on
	present  []visitor
	leaving  []visitor
}

// come lets a visitor of a random kind in.
func (v *visitors) come() {
	quick := func() {}
	linger := func() { // unless the round is over
		select {
		case <-time.After(rand.N(50 * time.Millisecond)):
		case <-v.over:
		}
	}
	panics := func() {
		if rand.IntN(5) == 0 {
			panic("soak: a bug in a handler")
		}
	}
	all := []struct {
		kind string
		come func() visitor
	}{
		{"quick handler", func() visitor { return v.handler(informer.HandlerOptions{}, quick) }},
		{"slow handler", func() visitor { return v.handler(informer.HandlerOptions{}, linger) }},
		{"slow coalescing handler", func() visitor { return v.handler(informer.HandlerOptions{Coalesce: true}, linger) }},
		{"resynced handler", func() visitor { return v.handler(informer.HandlerOptions{ResyncPeriod: time.Second}, quick) }},
		{"panicking handler", func() visitor { return v.handler(informer.HandlerOptions{}, panics) }},
		{"stuck handler", func() visitor { return v.handler(informer.HandlerOptions{}, func() { <-v.over }) }},
		{"share", func() visitor { return v.share("") }},
		{"share of one namespace", func() visitor { return v.share(namespaceOf(v.rand.IntN(namespaces))) }},
		{"waiter", func() visitor { // for a version that never comes
			return v.during(func(ctx context.Context) error { return v.observer.parts.WaitFor(ctx, "18446744073709551615") })
		}},
		{"informer", v.informer},
	}
	chosen := all[v.rand.IntN(len(all))]
	v.soak.visitors[chosen.kind]++
	v.present = append(v.present, chosen.come())
}

// handler registers a handler with the informer of all mills.
func (v *visitors) handler(o informer.HandlerOptions, each func()) visitor {
	r := must.Get(v.observer.mills.Subscribe(func(api.Change[*widget]) {
		v.observer.told.Add(1)
		each()
	}, o))(v)
	return visitor{leave: r.Remove, done: r.Done()}
}

// share takes a share of an informer, with a handler. An informer of one namespace starts for it and stops after it.
func (v *visitors) share(namespace string) visitor {
	s := v.observer.share(namespace)
	must.Get(s.Subscribe(func(api.Change[*widget]) { v.observer.told.Add(1) }, informer.HandlerOptions{}))(v)
	return visitor{leave: s.Release, done: s.Done()}
}

// informer runs an informer that is not shared, cuts what it caches, and has metrics.
func (v *visitors) informer() visitor {
	o := informerOptions(v.observer.log)
	o.Transform = func(p *widget) (*widget, error) {
		p.OwnerReferences = nil
		return p, nil
	}
	o.NoWatchList = v.rand.IntN(2) == 0
	i := informer.New(v.observer.view(parts, ""), o)
	v.soak.generation++
	shown := must.Get(v.observer.metrics.Informer(fmt.Sprint("visitor-", v.soak.generation), i))(v)
	return v.during(func(ctx context.Context) error {
		defer shown.Remove()
		return i.Run(ctx)
	})
}

// during runs f until the visitor leaves. Then it must return nil or the end of its context.
func (v *visitors) during(f func(context.Context) error) visitor {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && !errors.Is(err, context.Canceled) {
			v.Error(err)
		}
	}()
	return visitor{leave: cancel, done: done}
}

// goAway sends a random visitor away, without waiting until it has gone.
func (v *visitors) goAway() {
	if len(v.present) == 0 {
		return
	}
	i, last := v.rand.IntN(len(v.present)), len(v.present)-1
	one := v.present[i]
	v.present[i], v.present = v.present[last], v.present[:last]
	one.leave()
	v.leaving = append(v.leaving, one)
}

// end sends everyone away and waits until all have gone.
func (v *visitors) end() {
	close(v.over)
	for len(v.present) > 0 {
		v.goAway()
	}
	late := time.After(settleTimeout)
	for _, one := range v.leaving {
		select {
		case <-one.done:
		case <-late:
			writeGoroutines()
			v.Fatal("soak: a visitor does not leave")
		}
	}
}
