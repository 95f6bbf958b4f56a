package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/program"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/recorder"
	"github.com/leatproject/leat/workqueue"
)

// options are the options of the program: what to run, with its settings.
type options struct {
	*program.Program
	install  bool // create or update the definition first
	simulate bool // simulate nodes, with the times of kubelet
	kubelet  kubelet.Options

	counts     *training.Counts
	onMutation func(cache.Mutation) // for tests: called after a change of an object in a cache
}

// name is the name of the controller in logs, Events and metrics.
const name = "trainingjob"

// resync is the period after which every job is reconciled without an event.
const resync = 12 * time.Hour

// serve runs everything until ctx ends or a part fails. The caches and the controllers are added after the server
// serves TrainingJobs.
func serve(ctx context.Context, o options) error {
	events, err := recorder.New(o.Client, recorder.Options{Controller: name + "-controller", CoreV1: true, Logger: o.Log})
	if err != nil {
		return err
	}
	m, err := o.Manager()
	if err != nil {
		return err
	}
	w := &waiter{
		client: o.Client, namespace: o.Namespace, log: o.Log, patience: o.SyncTimeout,
		then: func() error { return o.add(m, events) },
	}
	if o.install {
		switch err := job.Install(ctx, o.Client); {
		case ctx.Err() != nil:
			return nil // an interrupt is not a failure
		case err != nil:
			return err
		}
	}
	_, err = m.AddWith(w, manager.Placement{Name: "definition", Group: manager.Others})
	_, errShow := o.Metrics.Recorder(name, events)
	err = errors.Join(err, errShow, m.Add(events), m.Readyz().Add("definition", w.check))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// add adds the caches and the controllers to a running manager.
func (o options) add(m *manager.Manager, events *recorder.Recorder) error {
	f := informer.NewFactory(informer.FactoryOptions{Logger: o.Log})
	jobs, err := informer.Shared(f, apiclient.NewTyped[*job.TrainingJob](o.Client, job.Resource, o.Namespace),
		informer.Options[*job.TrainingJob]{ResyncPeriod: resync, OnMutation: o.onMutation})
	pods, errPods := informer.Shared(f, apiclient.NewPartial[*plan.Pod](o.Client, training.Pods, o.Namespace),
		informer.Options[*plan.Pod]{Selector: api.Selector{Labels: job.LabelJob}, OnMutation: o.onMutation})
	services, errServices := informer.Shared(f, apiclient.NewPartial[*plan.Service](o.Client, training.Services, o.Namespace),
		informer.Options[*plan.Service]{Selector: api.Selector{Labels: job.LabelJob}, OnMutation: o.onMutation})
	if err := errors.Join(err, errPods, errServices); err != nil {
		return fmt.Errorf("make the caches: %w", err)
	}
	engine := controller.Options{Workers: o.Workers, CacheSyncTimeout: o.SyncTimeout, Logger: o.Log}
	gate := cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Log})
	c, err := training.New(training.Options{
		Client: o.Client, Jobs: jobs, Pods: pods, Services: services,
		Recorder: events, Gate: gate, Counts: o.counts, Controller: engine,
	})
	if err != nil {
		return err
	}
	err = errors.Join(o.ShowCaches(jobs, pods, services), o.ShowControllers(c))
	if _, errShow := o.Metrics.Gate(name, gate); err != nil || errShow != nil {
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

// nodes returns a simulation that runs the Pods of jobs. The Pods do not end by themselves.
func (o options) nodes(f *informer.Factory, engine controller.Options) (manager.Runnable, error) {
	pods, err := informer.Shared(f, apiclient.NewPartial[*workload.Pod](o.Client, workload.Pods, o.Namespace),
		informer.Options[*workload.Pod]{Selector: api.Selector{Labels: job.LabelJob}, OnMutation: o.onMutation})
	if err != nil {
		return nil, fmt.Errorf("make the caches: %w", err)
	}
	k := o.kubelet
	k.Client, k.Pods, k.Controller = o.Client, pods, engine
	k.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
	c := kubelet.New(k)
	return c, o.ShowControllers(c)
}
