package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
)

// visitor is a handler, a share or an informer that leaves before the round ends.
type visitor struct {
	leave func()
	done  <-chan struct{} // closed when no call is in flight and nothing is left of it
}

// visitors are those of one round. One goroutine uses them.
type visitors struct {
	o       *observer
	rand    *rand.Rand
	over    chan struct{} // closed when the round settles: what is stuck goes on
	present []visitor
	leaving []visitor
	came    tally
}

func newVisitors(o *observer, r *rand.Rand) *visitors {
	return &visitors{o: o, rand: r, over: make(chan struct{}), came: tally{}}
}

// come lets a visitor of a random kind in.
func (v *visitors) come() error {
	all := []struct {
		kind string
		come func() (visitor, error)
	}{
		{"quick handler", func() (visitor, error) { return v.handler(informer.HandlerOptions{}, func() {}) }},
		{"slow handler", func() (visitor, error) { return v.handler(informer.HandlerOptions{}, v.linger) }},
		{"slow coalescing handler", func() (visitor, error) { return v.handler(informer.HandlerOptions{Coalesce: true}, v.linger) }},
		{"resynced handler", func() (visitor, error) {
			return v.handler(informer.HandlerOptions{ResyncPeriod: time.Second}, func() {})
		}},
		{"panicking handler", func() (visitor, error) {
			return v.handler(informer.HandlerOptions{}, func() {
				if rand.IntN(5) == 0 {
					panic("soak: a bug in a handler")
				}
			})
		}},
		{"stuck handler", func() (visitor, error) { return v.handler(informer.HandlerOptions{}, func() { <-v.over }) }},
		{"share", v.share},
		{"share of one namespace", v.namespace},
		{"waiter", v.waiter},
		{"informer", v.informer},
	}
	chosen := all[v.rand.IntN(len(all))]
	v.came[chosen.kind]++
	one, err := chosen.come()
	v.present = append(v.present, one)
	return err
}

// linger takes up to 50 ms, unless the round is over.
func (v *visitors) linger() {
	timer := time.NewTimer(rand.N(50 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.over:
	}
}

// handler registers a handler with the informer of all mills.
func (v *visitors) handler(o informer.HandlerOptions, each func()) (visitor, error) {
	r, err := v.o.mills.Subscribe(func(api.Change[*mill]) {
		v.o.told.Add(1)
		each()
	}, o)
	if err != nil {
		return visitor{}, err
	}
	return visitor{leave: r.Remove, done: r.Done()}, nil
}

// share takes a share of the informer that is there, with a handler.
func (v *visitors) share() (visitor, error) {
	s, err := v.o.share()
	return v.guest(s, err)
}

// namespace takes a share of an informer of one namespace, which starts for it and stops after it.
func (v *visitors) namespace() (visitor, error) {
	view := apiclient.NewPartial[*mill](v.o.client, mills, namespaceOf(v.rand.IntN(namespaces)))
	s, err := factory.Shared(v.o.factory, view, informerOptions[*mill](v.o.log))
	return v.guest(s, err)
}

func (v *visitors) guest(s *factory.Share[*mill], err error) (visitor, error) {
	if err != nil {
		return visitor{}, err
	}
	if _, err := s.Subscribe(func(api.Change[*mill]) { v.o.told.Add(1) }, informer.HandlerOptions{}); err != nil {
		return visitor{}, err
	}
	return visitor{leave: s.Release, done: s.Done()}, nil
}

// waiter waits for a version that never comes.
func (v *visitors) waiter() (visitor, error) {
	return v.during(func(ctx context.Context) error { return v.o.parts.WaitFor(ctx, "18446744073709551615") }), nil
}

// informer runs an informer that is not shared, and cuts what it caches.
func (v *visitors) informer() (visitor, error) {
	o := informerOptions[*part](v.o.log)
	o.Transform = func(p *part) (*part, error) {
		p.OwnerReferences = nil
		return p, nil
	}
	o.NoWatchList = v.rand.IntN(2) == 0
	lw := api.ListerWatcher[*part](apiclient.NewPartial[*part](v.o.client, parts, ""))
	return v.during(informer.New(lw, o).Run), nil
}

// during runs f until the visitor leaves. Then it must return nil or the end of its context.
func (v *visitors) during(f func(context.Context) error) visitor {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && !errors.Is(err, context.Canceled) {
			v.o.note(err)
		}
	}()
	return visitor{leave: cancel, done: done}
}

// goAway sends a random visitor away, without waiting until it has gone.
func (v *visitors) goAway() {
	if len(v.present) == 0 {
		return
	}
	i := v.rand.IntN(len(v.present))
	one := v.present[i]
	v.present[i] = v.present[len(v.present)-1]
	v.present = v.present[:len(v.present)-1]
	one.leave()
	v.leaving = append(v.leaving, one)
}

// end sends everyone away and waits until all have gone.
func (v *visitors) end(ctx context.Context) error {
	close(v.over)
	for len(v.present) > 0 {
		v.goAway()
	}
	for _, one := range v.leaving {
		select {
		case <-one.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
