package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/client"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/leaderelection"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/recorder"
	"github.com/leatproject/leat/workqueue"
)

// options say what to run, and for whom.
type options struct {
	client      *apiclient.Client
	log         *zap.Logger
	namespace   string // empty means all
	install     bool   // the definition of TrainingJobs, first
	simulate    bool   // Pods that run, with the times of kubelet
	kubelet     kubelet.Options
	workers     int
	syncTimeout time.Duration
	admin       string  // where the admin server listens; empty is nowhere
	lease       api.Key // empty means that there is one replica

	shown      *shown
	onMutation func(cache.Mutation) // for tests: told when somebody changes what is in a cache
}

// name is the controller's, in logs, Events and metrics.
const name = "trainingjob"

// resync is how often every job is reconciled although nothing happened.
const resync = 12 * time.Hour

// serve runs everything until ctx ends, or one part fails and takes the others along. What needs TrainingJobs is added
// when the server knows them.
func serve(ctx context.Context, o options) error {
	elector, err := o.elector()
	if err != nil {
		return err
	}
	events, err := recorder.New(o.client, recorder.Options{Controller: name + "-controller", CoreV1: true, Logger: o.log})
	if err != nil {
		return err
	}
	m, err := manager.New(manager.Options{
		Elector: elector, SyncTimeout: o.syncTimeout, Logger: o.log,
		Admin: manager.AdminOptions{Address: o.admin, Debug: true, Metrics: metrics.Handler(o.shown.registry)},
	})
	if err != nil {
		return err
	}
	w := &waiter{
		client: o.client, namespace: o.namespace, log: o.log, patience: o.syncTimeout,
		then: func() error { return o.add(m, events) },
	}
	if o.install {
		switch err := job.Install(ctx, o.client); {
		case ctx.Err() != nil:
			return nil // an interrupt is no failure
		case err != nil:
			return err
		}
	}
	_, err = m.AddWith(w, manager.Placement{Name: "definition", Group: manager.Others})
	_, errShow := o.shown.Recorder(name, events)
	err = errors.Join(err, errShow, m.Add(events), m.Readyz().Add("definition", w.check))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// elector has one replica at a time do the work, if that was asked for.
func (o options) elector() (manager.Elector, error) {
	if o.lease == (api.Key{}) {
		return nil, nil
	}
	e, err := leaderelection.New(o.client, leaderelection.Options{
		Namespace: o.lease.Namespace, Name: o.lease.Name, OnSlowPath: o.shown.SlowPath(o.lease.Name), Logger: o.log,
	})
	if err != nil {
		return nil, err
	}
	_, err = o.shown.Elector(o.lease.Name, e)
	return e, err
}

// add adds the caches and the controllers to a manager that runs.
func (o options) add(m *manager.Manager, events *recorder.Recorder) error {
	f := informer.NewFactory(informer.FactoryOptions{Logger: o.log})
	jobs, err := informer.Shared(f, apiclient.For[*job.TrainingJob](o.client, job.Resource, o.namespace),
		informer.Options[*job.TrainingJob]{ResyncPeriod: resync, OnMutation: o.onMutation})
	pods, errPods := informer.Shared(f, apiclient.View[*plan.Pod](o.client, training.Pods, o.namespace),
		informer.Options[*plan.Pod]{LabelSelector: job.LabelJob, OnMutation: o.onMutation})
	services, errServices := informer.Shared(f, apiclient.View[*plan.Service](o.client, training.Services, o.namespace),
		informer.Options[*plan.Service]{LabelSelector: job.LabelJob, OnMutation: o.onMutation})
	if err := errors.Join(err, errPods, errServices); err != nil {
		return fmt.Errorf("make the caches: %w", err)
	}
	engine := controller.Options{Workers: o.workers, CacheSyncTimeout: o.syncTimeout, Logger: o.log}
	gate := client.NewGate(client.GateOptions{Logger: o.log})
	c, err := training.New(training.Options{
		Client: o.client, Jobs: jobs, Pods: pods, Services: services,
		Recorder: events, Gate: gate, Counts: o.shown.counts, Controller: engine,
	})
	if err != nil {
		return err
	}
	err = errors.Join(o.showCaches(jobs, pods, services), o.showController(c))
	if _, errShow := o.shown.Gate(name, gate); err != nil || errShow != nil {
		return errors.Join(err, errShow)
	}
	all := []manager.Runnable{f, c}
	if o.simulate {
		nodes, err := o.nodes(f, engine)
		if err != nil {
			return err
		}
		all = append(all, nodes)
	}
	return m.Add(all...)
}

func (o options) showCaches(caches ...metrics.Informer) (err error) {
	for _, c := range caches {
		_, errShow := o.shown.Informer("", c)
		err = errors.Join(err, errShow)
	}
	return err
}

func (o options) showController(c metrics.Controller) error {
	_, err := o.shown.Controller(c)
	return err
}

// nodes is a simulation that has the Pods of jobs run. They do not end by themselves.
func (o options) nodes(f *informer.Factory, engine controller.Options) (manager.Runnable, error) {
	pods, err := informer.Shared(f, apiclient.View[*workload.Pod](o.client, workload.Pods, o.namespace),
		informer.Options[*workload.Pod]{LabelSelector: job.LabelJob, OnMutation: o.onMutation})
	if err != nil {
		return nil, fmt.Errorf("make the caches: %w", err)
	}
	k := o.kubelet
	k.Client, k.Pods, k.Controller = o.client, pods, engine
	k.Controller.Bucket = workqueue.Bucket{QPS: -1}
	c := kubelet.New(k)
	return c, o.showController(c)
}
