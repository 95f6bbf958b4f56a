package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/leaderelection"
	"github.com/leatproject/leat/manager"
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
	admin       string // where the admin server listens; empty is nowhere
	lease       string // namespace/name; empty means that there is one replica

	counts     *training.Counts
	onMutation func(cache.Mutation) // for tests: told when somebody changes what is in a cache
}

// resync is how often every job is reconciled although nothing happened.
const resync = 12 * time.Hour

// serve runs everything until ctx ends, or one part fails and takes the others along. What needs TrainingJobs is added
// when the server knows them.
func serve(ctx context.Context, o options) error {
	elector, err := o.elector()
	if err != nil {
		return err
	}
	events, err := recorder.New(o.client, recorder.Options{Controller: "trainingjob-controller", CoreV1: true, Logger: o.log})
	if err != nil {
		return err
	}
	if o.counts == nil {
		o.counts = &training.Counts{}
	}
	m, err := manager.New(manager.Options{
		Elector: elector, SyncTimeout: o.syncTimeout, Logger: o.log,
		Admin: manager.AdminOptions{Address: o.admin, Debug: true, Metrics: metrics(o.counts)},
	})
	if err != nil {
		return err
	}
	w := &waiter{
		client: o.client, namespace: o.namespace, log: o.log, patience: o.syncTimeout,
		then: func() error { return o.add(m, events) },
	}
	if o.install {
		if err := job.Install(ctx, o.client); err != nil {
			return err
		}
	}
	_, err = m.AddWith(w, manager.Placement{Name: "definition", Group: manager.Others})
	err = errors.Join(err, m.Add(events), m.Readyz().Add("definition", w.check))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// elector has one replica at a time do the work, if that was asked for.
func (o options) elector() (manager.Elector, error) {
	if o.lease == "" {
		return nil, nil
	}
	key, err := api.ParseKey(o.lease)
	if err != nil {
		return nil, err
	}
	return leaderelection.New(o.client, leaderelection.Options{Namespace: key.Namespace, Name: key.Name, Logger: o.log})
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
	c, err := training.New(training.Options{
		Client: o.client, Jobs: jobs, Pods: pods, Services: services,
		Recorder: events, Counts: o.counts, Controller: engine,
	})
	if err != nil {
		return err
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
	return kubelet.New(k), nil
}

// metrics answers with the counts, in the text format of Prometheus.
func metrics(c *training.Counts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, m := range []struct {
			name, help string
			value      int64
		}{
			{"trainingjob_created_total", "Jobs that were seen for the first time.", c.Created.Load()},
			{"trainingjob_succeeded_total", "Jobs that have succeeded.", c.Succeeded.Load()},
			{"trainingjob_failed_total", "Jobs that have failed.", c.Failed.Load()},
			{"trainingjob_replica_restarts_total", "Restarts of replicas that were replaced.", c.Restarted.Load()},
		} {
			fmt.Fprintf(w, "# HELP %[1]s %[2]s\n# TYPE %[1]s counter\n%[1]s %[3]d\n", m.name, m.help, m.value)
		}
	})
}
