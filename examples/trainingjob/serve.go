package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/trainingjob/hooks"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
	"github.com/leatproject/leat/workqueue"
)

// options are the options of the program: what to run, with its settings.
type options struct {
	*program.Program
	install  bool // create or update the definition first
	simulate bool // simulate nodes, with the times of kubelet
	kubelet  kubelet.Options
	webhooks webhook.Options // no webhooks without an Address
	service  api.Key         // the Service of the webhooks, if the program makes their certificate

	counts    *training.Counts
	mutations informer.Mutations // for tests: reports changes of objects in a cache
}

// name is the name of the controller in logs, Events and metrics.
const name = "trainingjob"

// resync is the period after which every job is reconciled without an event.
const resync = 12 * time.Hour

// serve runs everything until ctx ends or a part fails. The caches and the controllers are added after the server
// serves TrainingJobs.
func serve(ctx context.Context, o options) error {
	events, err := events.New(o.Client, events.Options{Controller: name + "-controller", CoreV1: true})
	if err != nil {
		return err
	}
	o.Add(events)
	if err := o.addWebhooks(); err != nil {
		return err
	}
	w := &waiter{
		client: o.Client, namespace: o.Options().Namespace, log: o.Logger, patience: o.Options().Manager.SyncTimeout,
		then: func() error { return o.addControllers(events) },
	}
	if o.install {
		switch err := job.Install(ctx, o.Client); {
		case ctx.Err() != nil:
			return nil // an interrupt is not a failure
		case err != nil:
			return err
		}
	}
	_, err = o.Manager.AddWith(w, manager.Placement{Name: "definition"})
	err = errors.Join(err, o.Manager.Readyz().Add("definition", w.check))
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// addWebhooks adds the webhooks if they have an address. They serve before the definition exists, because a definition
// with a conversion needs them.
func (o options) addWebhooks() error {
	if o.webhooks.Address == "" {
		return nil
	}
	settings := o.webhooks
	settings.Logger, settings.Observer = o.Logger, o.Metrics
	if o.service != (api.Key{}) {
		certificates, err := selfsigned.New(selfsigned.Options{
			Client: o.Client, Secret: o.service, Hosts: []string{o.service.Name + "." + o.service.Namespace + ".svc"},
			Mutating: []string{name}, Validating: []string{name}, CustomResources: []string{job.DefinitionName}, Logger: o.Logger,
		})
		if err != nil {
			return err
		}
		settings.CertFile, settings.KeyFile, settings.Certificates = "", "", certificates
	}
	s, err := webhook.New(settings)
	if err != nil {
		return err
	}
	hooks.Add(s, hooks.Rules{}, hooks.Rules{})
	o.Add(s)
	return nil
}

// serviceKey reads the value of --webhook-service.
func serviceKey(value string) (api.Key, error) {
	key, err := api.ParseKey(value)
	if err == nil && key.Namespace == "" {
		err = fmt.Errorf("%q is not namespace/name", value)
	}
	return key, err
}

// addControllers adds the caches and the controllers to a running program.
func (o options) addControllers(events *events.Recorder) error {
	ofJobs := api.Selector{Labels: job.LabelJob}
	jobs := program.Typed(o.Program, job.Resource, informer.Options[*job.TrainingJob]{Handling: informer.Handling{ResyncPeriod: resync}, Mutations: o.mutations})
	pods := program.Partial(o.Program, training.Pods, informer.Options[*plan.Pod]{Selector: ofJobs, Mutations: o.mutations})
	services := program.Partial(o.Program, training.Services, informer.Options[*plan.Service]{Selector: ofJobs, Mutations: o.mutations})
	c, err := training.New(training.Options{
		Client: o.Client, Jobs: jobs, Pods: pods.Informer(), Services: services.Informer(),
		Recorder: events, Gate: o.Gate(name), Counts: o.counts, Controller: o.Options().Controller,
	})
	if err != nil {
		return err
	}
	o.Add(c)
	if o.simulate {
		k := o.kubelet
		k.Client, k.Controller = o.Client, o.Options().Controller
		k.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
		k.Pods = program.Partial(o.Program, workload.Pods, informer.Options[*workload.Pod]{Selector: ofJobs, Mutations: o.mutations})
		o.Add(kubelet.New(k))
	}
	return o.Err()
}
