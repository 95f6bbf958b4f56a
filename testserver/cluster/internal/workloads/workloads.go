package workloads

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reconcile/events"
)

// Options are the options of Workloads.
type Options struct {
	// Controller are the options of both controllers.
	Controller controller.Options
}

// Workloads are the two controllers.
type Workloads struct {
	client  *apiclient.Client
	options Options
}

// New returns controllers of the Deployments and ReplicaSets that a client reaches.
func New(client *apiclient.Client, o Options) *Workloads { return &Workloads{client, o} }

// Run works until ctx ends. It returns after its goroutines have ended.
func (w *Workloads) Run(ctx context.Context) error {
	deployments, deploymentCache := typed[*appsv1.Deployment](w.client, workload.Deployments)
	sets, setCache := typed[*appsv1.ReplicaSet](w.client, workload.ReplicaSets)
	live := apiclient.NewPartial[*workload.Pod](w.client, workload.Pods, "")
	podCache := informer.New(live, informer.Options[*workload.Pod]{})
	pods := cachedclient.NewPartial(live, podCache, cachedclient.Options{})
	var recorders [2]*events.Recorder
	for i, name := range []string{"deployment-controller", "replicaset-controller"} {
		var err error
		if recorders[i], err = events.New(w.client, events.Options{Controller: name, CoreV1: true}); err != nil {
			return fmt.Errorf("workloads: %w", err)
		}
	}
	rollouts := rollout.New(rollout.Options{
		Deployments: deployments, ReplicaSets: sets, Pods: pods, Recorder: recorders[0], Controller: w.options.Controller,
	})
	replicasets := replicas.New(replicas.Options{
		Client: w.client, ReplicaSets: sets, Pods: pods, Recorder: recorders[1], Controller: w.options.Controller,
	})
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		deploymentCache.Run, setCache.Run, podCache.Run, recorders[0].Run, recorders[1].Run, rollouts.Run, replicasets.Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// typed returns a client with a cache.
func typed[T api.Object](c *apiclient.Client, r api.Resource) (*cachedclient.Typed[T], *informer.Informer[T]) {
	live := apiclient.NewTyped[T](c, r, "")
	i := informer.New(live, informer.Options[T]{})
	return cachedclient.NewTyped(live, i, cachedclient.Options{}), i
}
