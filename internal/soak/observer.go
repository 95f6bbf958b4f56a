package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/reconcile/events"
)

// observer is a process that is never restarted.
type observer struct {
	log      *zap.Logger
	line     *line
	client   *apiclient.Client
	factory  *factory.Factory
	view     *apiclient.PartialClient[*mill]
	mills    *factory.Share[*mill]
	parts    *informer.Informer[*part] // over WebSocket
	recorder *events.Recorder
	told     atomic.Int64 // notifications to all handlers

	stop    context.CancelFunc
	running sync.WaitGroup

	mu  sync.Mutex // guards the field below
	err error
}

func startObserver(w *world, log *zap.Logger) (*observer, error) {
	o := &observer{line: newLine(), log: log.Named("observer")}
	var err error
	if o.client, err = w.client(o.line, 0); err != nil {
		return nil, err
	}
	o.factory = factory.New(factory.Options{Logger: o.log})
	o.view = apiclient.NewPartial[*mill](o.client, mills, "")
	if o.mills, err = o.share(); err != nil {
		return nil, err
	}
	o.parts = informer.New(websocket.Watch(apiclient.NewPartial[*part](o.client, parts, "")), informerOptions[*part](o.log))
	if o.recorder, err = events.New(o.client, events.Options{Controller: "leat.test/observer", Logger: o.log}); err != nil {
		return nil, err
	}
	// This handler asks for resyncs because a handler that joins later gets none otherwise.
	_, err = o.mills.Subscribe(func(api.Change[*mill]) { o.told.Add(1) },
		informer.HandlerOptions{Name: "resident", ResyncPeriod: time.Second})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	for _, run := range []func(context.Context) error{o.factory.Run, o.parts.Run, o.recorder.Run} {
		o.running.Go(func() { o.note(run(ctx)) })
	}
	return o, nil
}

// share returns one more share of the informer of all mills.
func (o *observer) share() (*factory.Share[*mill], error) {
	return factory.Shared(o.factory, o.view, informerOptions[*mill](o.log))
}

func (o *observer) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// end stops the observer and returns what went wrong.
func (o *observer) end() error {
	o.stop()
	o.running.Wait()
	o.client.CloseIdleConnections()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// The recorder remembers 4,096 objects and as many series. These numbers fill it in the first round.
const (
	firstEvents = 4500
	nextEvents  = 100
)

// record makes Events of objects that the recorder does not know.
func (o *observer) record(ctx context.Context, round int) error {
	n := nextEvents
	if round == 1 {
		n = firstEvents
	}
	for i := range n {
		if err := poll(ctx, settleTimeout, func() error {
			if waiting := o.recorder.Stats().Waiting; waiting > 900 {
				return fmt.Errorf("soak: %d Events wait to be written", waiting)
			}
			return nil
		}); err != nil {
			return err
		}
		m := &mill{}
		m.Namespace, m.Name, m.UID = namespaceOf(i), fmt.Sprintf("told-of-%d", i), uid(round, i)
		o.recorder.Normal(mills, m, "Seen", "in round %d", round)
	}
	return nil
}

// equal returns an error that says what differs between a cache and the server.
func equal[T api.Object](name string, i *informer.Informer[T], want map[api.Key]string) error {
	s := i.Snapshot()
	for key, version := range want {
		o, ok := s.Get(key)
		if !ok {
			return fmt.Errorf("soak: %s lacks %s %s: %s", name, i.Resource(), key, i.Status())
		}
		if o.GetResourceVersion() != version {
			return fmt.Errorf("soak: %s has %s %s at version %s, the server at %s: %s", name, i.Resource(), key,
				o.GetResourceVersion(), version, i.Status())
		}
	}
	if s.Len() != len(want) {
		return fmt.Errorf("soak: %s has %d %s, the server %d: %s", name, s.Len(), i.Resource(), len(want), i.Status())
	}
	return nil
}
