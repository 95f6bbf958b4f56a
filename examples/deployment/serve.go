package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/leaderelection"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/recorder"
	"github.com/leatproject/leat/workqueue"
)

// What can run.
const (
	partDeployment = "deployment"
	partReplicaSet = "replicaset"
	partKubelet    = "kubelet"
)

// options say what to run, and for whom.
type options struct {
	client      *apiclient.Client
	shown       *instruments
	log         *zap.Logger
	namespace   string // empty means all
	parts       map[string]bool
	workers     int
	syncTimeout time.Duration
	admin       string          // where the admin server listens; empty is nowhere
	lease       string          // namespace/name; empty means that there is one replica
	kubelet     kubelet.Options // of the simulation: its times
}

// resync is how often everything is reconciled although nothing happened, for what was dropped after too many failures.
const resync = 12 * time.Hour

// caches are what all controllers read, each collection once.
type caches struct {
	factory     *informer.Factory
	deployments *informer.Share[*appsv1.Deployment]
	sets        *informer.Share[*appsv1.ReplicaSet]
	pods        *informer.Share[*workload.Pod]
}

// serve runs everything until ctx ends, or one part fails and takes the others along. Caches and recorders outlive the
// workers, who read and tell until the last of them has returned.
func serve(ctx context.Context, o options) error {
	all, err := newCaches(o)
	if err != nil {
		return err
	}
	recorders, controllers, err := o.controllers(all)
	if err != nil {
		return err
	}
	elector, err := o.elector()
	if err != nil {
		return err
	}
	if err := o.shown.show(all, controllers, o.lease, elector); err != nil {
		return err
	}
	m, err := manager.New(manager.Options{
		Elector: elector, SyncTimeout: o.syncTimeout, Logger: o.log,
		Admin: manager.AdminOptions{Address: o.admin, Debug: true, Metrics: o.shown.handler()},
	})
	if err != nil {
		return err
	}
	runnables := []manager.Runnable{all.factory}
	for _, r := range recorders {
		runnables = append(runnables, r)
	}
	for _, c := range controllers {
		runnables = append(runnables, c)
	}
	if err := m.Add(runnables...); err != nil {
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
	return leaderelection.New(o.client, leaderelection.Options{
		Namespace: key.Namespace, Name: key.Name, OnSlowPath: o.shown.SlowPath(o.lease), Logger: o.log,
	})
}

func newCaches(o options) (*caches, error) {
	c := &caches{factory: informer.NewFactory(informer.FactoryOptions{Logger: o.log})}
	var err, errs error
	c.deployments, err = informer.Shared(c.factory, apiclient.For[*appsv1.Deployment](o.client, workload.Deployments, o.namespace),
		informer.Options[*appsv1.Deployment]{ResyncPeriod: resync})
	errs = errors.Join(errs, err)
	c.sets, err = informer.Shared(c.factory, apiclient.For[*appsv1.ReplicaSet](o.client, workload.ReplicaSets, o.namespace),
		informer.Options[*appsv1.ReplicaSet]{ResyncPeriod: resync})
	errs = errors.Join(errs, err)
	c.pods, err = informer.Shared(c.factory, apiclient.View[*workload.Pod](o.client, workload.Pods, o.namespace),
		informer.Options[*workload.Pod]{})
	return c, errors.Join(errs, err)
}

// controllers makes those that were asked for, and the recorders that their Events go through.
func (o options) controllers(c *caches) (recorders []*recorder.Recorder, all []*controller.Controller[api.Key], err error) {
	told := func(name string) *recorder.Recorder {
		r, failed := recorder.New(o.client, recorder.Options{Controller: name + "-controller", CoreV1: true, Logger: o.log})
		if failed == nil {
			_, failed = o.shown.Recorder(name, r)
		}
		recorders, err = append(recorders, r), errors.Join(err, failed)
		return r
	}
	engine := controller.Options{Workers: o.workers, CacheSyncTimeout: o.syncTimeout, Logger: o.log}
	if o.parts[partDeployment] {
		all = append(all, rollout.New(rollout.Options{
			Client: o.client, Deployments: c.deployments, ReplicaSets: c.sets, Pods: c.pods,
			Recorder: told(partDeployment), Controller: engine,
		}))
	}
	if o.parts[partReplicaSet] {
		all = append(all, replicas.New(replicas.Options{
			Client: o.client, ReplicaSets: c.sets, Pods: c.pods, Recorder: told(partReplicaSet), Controller: engine,
		}))
	}
	if o.parts[partKubelet] {
		k := o.kubelet
		k.Client, k.Pods, k.Controller = o.client, c.pods, engine
		k.Controller.Bucket = workqueue.Bucket{QPS: -1}
		all = append(all, kubelet.New(k))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the controllers: %w", err)
	}
	return recorders, all, nil
}
