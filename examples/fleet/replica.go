package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/workqueue"
)

const group = "fleet"

// runReplica runs one replica of the deployment example until ctx ends. It lists, watches and keeps only the
// Deployments, ReplicaSets and Pods in the namespaces of its ranges. A Deployment, its ReplicaSets and their Pods have
// the same namespace, so one replica has them all.
func runReplica(ctx context.Context, c apiclient.Config, o replicaConfig) (err error) {
	c.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return shard.Fence(next) }
	log := cli.NewLogger(os.Stderr, false).Named(o.Identity).WithOptions(zap.IncreaseLevel(zap.WarnLevel))
	options := program.Options{Name: "fleet", Config: c, Logger: log}
	if o.Page {
		if options.Manager.Admin, err = servePage(o.Identity, os.Stderr); err != nil {
			return err
		}
	}
	p, err := program.New(options)
	if err != nil {
		return err
	}
	member, err := shard.New(p.Client, shard.Options{Namespace: o.Namespace, Group: group, Identity: o.Identity, Field: hashrange.Namespace})
	if err != nil {
		return err
	}
	livePods := apiclient.NewPartial[*workload.Pod](p.Client, workload.Pods, "")
	liveSets := apiclient.NewTyped[*appsv1.ReplicaSet](p.Client, workload.ReplicaSets, "")
	liveDeployments := apiclient.NewTyped[*appsv1.Deployment](p.Client, workload.Deployments, "")
	pods, podRanges := ranged(p, "pod ranges", livePods)
	sets, setRanges := ranged(p, "replica set ranges", liveSets)
	deployments, deploymentRanges := ranged(p, "deployment ranges", liveDeployments)

	// Children come first: with half of its Pods in the cache, a ReplicaSet would create the other half again.
	defer member.Follow(podRanges)()
	defer podRanges.Then(setRanges)()
	defer setRanges.Then(deploymentRanges)()

	events, err := events.New(p.Client, events.Options{Controller: group, CoreV1: true})
	if err != nil {
		return err
	}
	cachedPods := cachedclient.NewPartial(livePods, pods, cachedclient.Options{})
	cachedSets := cachedclient.NewTyped(liveSets, sets, cachedclient.Options{})
	p.Add(events,
		rollout.New(rollout.Options{
			Deployments: cachedclient.NewTyped(liveDeployments, deployments, cachedclient.Options{}),
			ReplicaSets: cachedSets, Pods: cachedPods, Recorder: events,
			Shards: shard.For(member, deployments).After(deploymentRanges.Then),
		}),
		replicas.New(replicas.Options{
			Client: p.Client, ReplicaSets: cachedSets, Pods: cachedPods, Recorder: events,
			Shards: shard.For(member, sets).After(setRanges.Then),
		}))
	if o.Kubelet {
		k := kubelet.Options{Client: p.Client, Pods: cachedPods, Shards: shard.For(member, pods).After(podRanges.Then)}
		k.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
		p.Add(kubelet.New(k))
	}
	p.Add(member)
	return p.Run(ctx)
}

// servePage returns the options of an admin server with a live page, and prints the URL of the page.
func servePage(identity string, out io.Writer) (manager.AdminOptions, error) {
	page, err := livepage.New(livepage.Options{Program: identity})
	if err != nil {
		return manager.AdminOptions{}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return manager.AdminOptions{}, fmt.Errorf("--page: %w", err)
	}
	fmt.Fprintf(out, "live page of %s on http://%s/page/\n", identity, l.Addr())
	return manager.AdminOptions{Listener: l, Debug: true, Page: page}, nil
}

// ranged adds an informer to the program that reads only some ranges of a collection. The ranges come from what the
// caller makes it follow.
func ranged[T api.Object](p *program.Program, name string, lw api.ListerWatcher[T]) (*informer.Informer[T], *shardedsource.Scopes[T]) {
	set := scopes.New(lw.Collection().Resource, scopes.Options[T]{})
	ranges := shardedsource.NewScopes(set, lw, hashrange.Namespace, shardedsource.Options{})
	p.Add(set)
	if _, err := p.Manager.AddWith(ranges, manager.Placement{Name: name}); err != nil {
		panic(err) // no part has the name, and the manager does not run yet
	}
	return set.Informer, ranges
}
