package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/workqueue"
)

// The times of the election. They are short because a round is.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 200 * time.Millisecond
)

// slot is the place of a replica and of its successors. They share metrics, so that what a replica registers must be
// gone when its successor comes.
type slot struct {
	index    int
	registry *prometheus.Registry
	metrics  *metrics.Metrics
}

func newSlot(index int) (*slot, error) {
	s := &slot{index: index, registry: prometheus.NewRegistry()}
	var err error
	s.metrics, err = metrics.New(s.registry)
	return s, err
}

// replica is one process of a program that has two, as far as one can be had inside another process.
type replica struct {
	*slot
	name       string
	line       *line
	log        *zap.Logger
	client     *apiclient.Client
	factory    *factory.Factory
	mills      *factory.Share[*mill]
	parts      *factory.Share[*part]
	recorder   *events.Recorder
	gate       *cachedclient.Gate
	controller *controller.Controller[api.Key]
	elector    *leaderelection.Elector
	manager    *manager.Manager
	admin      net.Listener
	shown      []*metrics.CollectorRegistration
	stop       context.CancelFunc
	done       chan struct{} // closed when Run has returned, with err
	err        error
}

// startReplica starts a replica.
func startReplica(w *world, s *slot, generation int, quiet *atomic.Bool, log *zap.Logger) (*replica, error) {
	name := fmt.Sprintf("replica-%d-%d", s.index, generation)
	r := &replica{slot: s, name: name, line: newLine(), log: log.Named(name), done: make(chan struct{})}
	var err error
	if r.client, err = w.client(r.line, s.index); err != nil {
		return nil, err
	}
	if err := errors.Join(r.makeCaches(), r.makeController(quiet), r.makeManager()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.done)
		r.err = r.manager.Run(ctx)
		r.client.CloseIdleConnections()
		for _, shown := range r.shown {
			shown.Remove()
		}
	}()
	return r, nil
}

func (r *replica) makeCaches() (err error) {
	r.factory = factory.New(factory.Options{Logger: r.log})
	r.mills, err = factory.Shared(r.factory, apiclient.NewPartial[*mill](r.client, mills, ""), informerOptions[*mill](r.log))
	if err != nil {
		return err
	}
	r.parts, err = factory.Shared(r.factory, apiclient.NewPartial[*part](r.client, parts, ""), informerOptions[*part](r.log))
	if err != nil {
		return err
	}
	r.recorder, err = events.New(r.client, events.Options{Controller: "leat.test/soak", Instance: r.name, Logger: r.log})
	return err
}

func (r *replica) makeController(quiet *atomic.Bool) error {
	r.gate = cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Second, Logger: r.log})
	m := &miller{
		quiet:    quiet,
		mills:    cachedclient.NewTyped(apiclient.NewTyped[*mill](r.client, mills, ""), r.mills.Informer, cachedclient.Options{Overlay: true}),
		parts:    cachedclient.NewTyped(apiclient.NewTyped[*part](r.client, parts, ""), r.parts.Informer, cachedclient.Options{}),
		byMill:   informer.AddIndex(r.parts.Informer, millOf),
		recorder: r.recorder,
	}
	r.controller = controller.New("mills", controller.Gated(m, r.gate), controller.Options{
		Workers: 4, ReconcileTimeout: 2 * time.Second, Logger: r.log,
		Queue: workqueue.Options{Backoff: workqueue.Backoff{Max: time.Second}, Bucket: workqueue.Bucket{QPS: -1}},
	})
	r.controller.Watch(controller.For(r.mills))
	r.controller.Watch(controller.Owns(r.mills, r.parts))
	return nil
}

func (r *replica) makeManager() (err error) {
	r.elector, err = leaderelection.New(r.client, leaderelection.Options{
		Namespace: "default", Name: "soak", Identity: r.name, Logger: r.log,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	})
	if err != nil {
		return err
	}
	if r.admin, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("soak: listen: %w", err)
	}
	r.manager, err = manager.New(manager.Options{
		Elector: r.elector, Logger: r.log,
		Admin: manager.AdminOptions{Listener: r.admin, Metrics: metrics.Handler(r.registry), Debug: true},
	})
	if err != nil {
		return err
	}
	return errors.Join(r.show(), r.manager.Add(r.recorder, r.factory, r.controller))
}

// show registers everything that has metrics.
func (r *replica) show() (failed error) {
	note := func(shown *metrics.CollectorRegistration, err error) {
		failed = errors.Join(failed, err)
		r.shown = append(r.shown, shown)
	}
	note(r.metrics.Informer("", r.mills))
	note(r.metrics.Informer("", r.parts))
	note(r.metrics.Controller(r.controller))
	note(r.metrics.Gate("mills", r.gate))
	note(r.metrics.Recorder("mills", r.recorder))
	note(r.metrics.Elector("soak", r.elector))
	return failed
}

// end waits until the replica has stopped. A lost lease is no failure: the soak takes leases away, and so does a busy
// machine.
func (r *replica) end() error {
	<-r.done
	if errors.Is(r.err, leaderelection.ErrLost) {
		return nil
	}
	return r.err
}

// restart stops the replica and waits until it has stopped.
func (r *replica) restart() error {
	r.stop()
	return r.end()
}

// cutOff takes the network from the replica. A leader stops by itself after the renew deadline; any other is stopped
// then.
func (r *replica) cutOff() error {
	r.line.set(true)
	timer := time.NewTimer(renewDeadline + time.Second)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
	r.stop()
	return r.end()
}

// hasEnded tells whether Run has returned.
func (r *replica) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// scrape reads the metrics, as Prometheus would.
func (r *replica) scrape(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.admin.Addr().String()+"/metrics", nil)
	if err != nil {
		return err
	}
	t := &http.Transport{DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	answer, err := (&http.Client{Transport: t}).Do(request)
	if err != nil {
		return fmt.Errorf("soak: metrics of %s: %w", r.name, err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
