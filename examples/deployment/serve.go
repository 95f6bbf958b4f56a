package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/program"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/recorder"
	"github.com/leatproject/leat/workqueue"
)

// The parts of the program.
const (
	partDeployment = "deployment"
	partReplicaSet = "replicaset"
	partKubelet    = "kubelet"
)

// options are the options of the program: its parts and their settings.
type options struct {
	*program.Program
	parts   map[string]bool
	kubelet kubelet.Options // options of the simulation
}

// resync is the period after which everything is reconciled without an event. It repairs keys that were dropped after
// too many failures.
const resync = 12 * time.Hour

// caches are the caches of all controllers, one a resource.
type caches struct {
	factory     *informer.Factory
	deployments *informer.Share[*appsv1.Deployment]
	sets        *informer.Share[*appsv1.ReplicaSet]
	pods        *informer.Share[*workload.Pod]
}

// serve runs everything until ctx ends or a part fails. Caches and recorders stop after the last worker has returned,
// because workers use them.
func serve(ctx context.Context, o options) error {
	all, err := newCaches(o)
	if err != nil {
		return err
	}
	recorders, controllers, err := o.controllers(all)
	if err != nil {
		return err
	}
	m, err := o.Manager()
	if err != nil {
		return err
	}
	runnables := []manager.Runnable{all.factory}
	for _, r := range recorders {
		runnables = append(runnables, r)
	}
	err = o.ShowCaches(all.deployments, all.sets, all.pods)
	for _, c := range controllers {
		runnables = append(runnables, c)
		err = errors.Join(err, o.ShowControllers(c))
	}
	if err := errors.Join(err, m.Add(runnables...)); err != nil {
		return err
	}
	return m.Run(ctx)
}

func newCaches(o options) (*caches, error) {
	c := &caches{factory: informer.NewFactory(informer.FactoryOptions{Logger: o.Log})}
	var err, errs error
	c.deployments, err = informer.Shared(c.factory, apiclient.NewTyped[*appsv1.Deployment](o.Client, workload.Deployments, o.Namespace),
		informer.Options[*appsv1.Deployment]{ResyncPeriod: resync})
	errs = errors.Join(errs, err)
	c.sets, err = informer.Shared(c.factory, apiclient.NewTyped[*appsv1.ReplicaSet](o.Client, workload.ReplicaSets, o.Namespace),
		informer.Options[*appsv1.ReplicaSet]{ResyncPeriod: resync})
	errs = errors.Join(errs, err)
	c.pods, err = informer.Shared(c.factory, apiclient.NewPartial[*workload.Pod](o.Client, workload.Pods, o.Namespace),
		informer.Options[*workload.Pod]{})
	return c, errors.Join(errs, err)
}

// controllers returns the controllers of the requested parts, and the recorders of their Events.
func (o options) controllers(c *caches) (recorders []*recorder.Recorder, all []*controller.Controller[api.Key], err error) {
	newRecorder := func(name string) *recorder.Recorder {
		r, failed := recorder.New(o.Client, recorder.Options{Controller: name + "-controller", CoreV1: true, Logger: o.Log})
		if failed == nil {
			_, failed = o.Metrics.Recorder(name, r)
		}
		recorders, err = append(recorders, r), errors.Join(err, failed)
		return r
	}
	engine := controller.Options{Workers: o.Workers, CacheSyncTimeout: o.SyncTimeout, Logger: o.Log}
	if o.parts[partDeployment] {
		all = append(all, rollout.New(rollout.Options{
			Client: o.Client, Deployments: c.deployments, ReplicaSets: c.sets, Pods: c.pods,
			Recorder: newRecorder(partDeployment), Controller: engine,
		}))
	}
	if o.parts[partReplicaSet] {
		all = append(all, replicas.New(replicas.Options{
			Client: o.Client, ReplicaSets: c.sets, Pods: c.pods, Recorder: newRecorder(partReplicaSet), Controller: engine,
		}))
	}
	if o.parts[partKubelet] {
		k := o.kubelet
		k.Client, k.Pods, k.Controller = o.Client, c.pods, engine
		k.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
		all = append(all, kubelet.New(k))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the controllers: %w", err)
	}
	return recorders, all, nil
}
