package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
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

// serve runs everything until ctx ends or a part fails. Caches and recorders stop after the last worker has returned,
// because workers use them.
func serve(ctx context.Context, o options) error {
	deployments := program.Typed(o.Program, workload.Deployments, informer.Options[*appsv1.Deployment]{Handling: informer.Handling{ResyncPeriod: resync}})
	sets := program.Typed(o.Program, workload.ReplicaSets, informer.Options[*appsv1.ReplicaSet]{Handling: informer.Handling{ResyncPeriod: resync}})
	pods := program.Partial(o.Program, workload.Pods, informer.Options[*workload.Pod]{})
	engine := o.Options().Controller
	if o.parts[partDeployment] {
		events, err := o.recorder(partDeployment)
		if err != nil {
			return err
		}
		o.Add(rollout.New(rollout.Options{
			Deployments: deployments, ReplicaSets: sets, Pods: pods, Recorder: events, Controller: engine,
		}))
	}
	if o.parts[partReplicaSet] {
		events, err := o.recorder(partReplicaSet)
		if err != nil {
			return err
		}
		o.Add(replicas.New(replicas.Options{
			Client: o.Client, ReplicaSets: sets, Pods: pods, Recorder: events, Controller: engine,
		}))
	}
	if o.parts[partKubelet] {
		k := o.kubelet
		k.Client, k.Pods, k.Controller = o.Client, pods, engine
		k.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
		o.Add(kubelet.New(k))
	}
	if err := o.Manager.Readyz().Add("heard", manager.HeardWithin(5*time.Minute, o.Informers.Status)); err != nil {
		return err
	}
	return o.Run(ctx)
}

// recorder returns the recorder of a part. Each part has its own, because an Event names its controller.
func (o options) recorder(part string) (*events.Recorder, error) {
	events, err := events.New(o.Client, events.Options{Controller: part + "-controller", CoreV1: true})
	if err == nil {
		o.Add(events)
	}
	return events, err
}
