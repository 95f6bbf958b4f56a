package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver/cluster/internal/accounts"
	"github.com/leatproject/leat/testserver/cluster/internal/collect"
	"github.com/leatproject/leat/testserver/cluster/internal/disruption"
	"github.com/leatproject/leat/testserver/cluster/internal/namespaces"
	"github.com/leatproject/leat/testserver/cluster/internal/simulate"
	"github.com/leatproject/leat/testserver/cluster/internal/stages"
	"github.com/leatproject/leat/testserver/cluster/internal/workloads"
)

// Behaviour switches what happens around the API server. The zero value is a cluster without nodes: it collects
// garbage, deletes the contents of namespaces, creates their service accounts, and keeps the status of disruption
// budgets. The requests of these parts are neither in the log of the server nor subject to its faults; see
// testserver.Server.ControlPlane. When Server.Load or the fault Restore replaces the state, all parts start again at
// once, and simulated nodes that the new state lacks are created.
type Behaviour struct {
	// NoGarbageCollection keeps dependents whose owners are gone. Owners that are deleted in the foreground, or with
	// the policy orphan, then wait for a garbage collector outside.
	NoGarbageCollection bool
	// NoNamespaceDeletion leaves deleted namespaces in the phase Terminating, for a controller outside.
	NoNamespaceDeletion bool
	// NoServiceAccounts creates neither the service account "default" of a namespace nor its ConfigMap
	// kube-root-ca.crt.
	NoServiceAccounts bool
	// NoDisruptionBudgets leaves the status of PodDisruptionBudgets to a controller outside. Evictions obey the status
	// in any case.
	NoDisruptionBudgets bool
	// Workloads runs leat's own controllers of Deployments and ReplicaSets.
	Workloads bool
	// Nodes simulates nodes, a scheduler and kubelets, so that pods run, and adds metrics.k8s.io. Nil means that pods
	// stay as they are.
	Nodes *Nodes
	// Stages changes pods and nodes after a while; see ParseStages. It works with simulated nodes, and with others.
	Stages *Stages
}

// Stages are changes of pods and nodes that a file describes: crashes, evictions, conditions, and others.
type Stages struct {
	// OnError gets the errors of actions that are tried again, except conflicts and refused evictions. It may be called
	// from several goroutines. Nil ignores them.
	OnError func(error)

	list []stages.Stage
}

func (s *Stages) report(err error) {
	if s.OnError != nil {
		s.OnError(fmt.Errorf("cluster: %w", err))
	}
}

// ParseStages reads stages, a list in YAML or JSON. docs/serve.md describes it. An error names the stage.
func ParseStages(file []byte) (*Stages, error) {
	list, err := stages.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return &Stages{list: list}, nil
}

// withoutControllers returns the behaviour without what it has by default.
func (b Behaviour) withoutControllers() Behaviour {
	b.NoGarbageCollection, b.NoNamespaceDeletion, b.NoServiceAccounts, b.NoDisruptionBudgets = true, true, true, true
	return b
}

// Nodes are the settings of simulated nodes. The zero value has three nodes, on which everything runs at once.
type Nodes struct {
	// Count is the number of nodes: node-0, node-1, and so on. Zero means 3, and a negative value none. Nodes that
	// other clients create are simulated too. A node whose condition Ready is set to another value than True does
	// nothing.
	Count int
	// Capacity is what a node has. Nil means 8 CPUs, 32 GiB of memory and 110 pods.
	Capacity corev1.ResourceList
	// Node changes a node before it is created, for example its labels, taints or capacity.
	Node func(index int, node *corev1.Node)
	// Start is the time from the binding of a pod until its containers run. Stop is the time that a pod takes to
	// terminate. The times in the status of a pod have whole seconds, so the delays are rounded.
	Start, Stop time.Duration
	// Complete is the time that a container runs if it may end by itself, because restartPolicy is not Always, as in
	// the pods of Jobs.
	Complete time.Duration
	// Heartbeat is the pause between two renewals of a node's Lease, without which kube-controller-manager would take
	// the node for lost. Zero means 10 seconds, and a negative value never.
	Heartbeat time.Duration
	// Image says what the containers of an image do. Nil means that an image with the tag "broken" cannot be pulled,
	// and that all others run.
	Image func(image string) Outcome
}

// Run simulates the nodes, a scheduler and kubelets for the API server that a client reaches, as kwok does, until ctx
// ends. It returns an error if it cannot create the nodes. A Cluster needs [Behaviour].Nodes instead, which follows a
// restored state.
func (n Nodes) Run(ctx context.Context, client *apiclient.Client) error {
	return simulate.New(client, n.simulation()).Run(ctx)
}

// Outcome is what the containers of an image do. The zero value runs, and ends only if restartPolicy allows it.
type Outcome struct {
	// PullError is the message of the registry if the image cannot be pulled: ErrImagePull, then ImagePullBackOff.
	PullError string
	// Run is the time after which the container ends. Zero means Nodes.Complete if restartPolicy is not Always, and
	// otherwise that the container runs forever.
	Run time.Duration
	// ExitCode is the exit code of a container that ends.
	ExitCode int32
	// Unready means that the container never becomes ready.
	Unready bool
}

// simulation returns the options of the simulation.
func (n Nodes) simulation() simulate.Options {
	o := simulate.Options{
		Nodes: n.Count, Capacity: n.Capacity, Node: n.Node, Start: n.Start, Stop: n.Stop, Complete: n.Complete,
		Heartbeat: n.Heartbeat,
	}
	if n.Image != nil {
		o.Image = func(image string) simulate.Outcome { return simulate.Outcome(n.Image(image)) }
	}
	return o
}

// part is one part of the behaviour.
type part struct {
	name string // of its client, which managedFields show
	run  func(*apiclient.Client) func(context.Context) error
	// from closes when the part has something to do. Nil means now.
	from <-chan struct{}
}

// parts returns the parts that are switched on. garbage closes when there may be garbage: a collector follows every
// resource, which takes 300 goroutines and 3 MB.
func (b Behaviour) parts(lenient bool, ca []byte, garbage <-chan struct{}) []part {
	const manager = "kube-controller-manager"
	var out []part
	if !b.NoGarbageCollection {
		out = append(out, part{manager, func(c *apiclient.Client) func(context.Context) error {
			return collect.New(c, collect.Options{}).Run
		}, garbage})
	}
	if !b.NoNamespaceDeletion && !lenient {
		out = append(out, part{manager, func(c *apiclient.Client) func(context.Context) error {
			return namespaces.New(c, namespaces.Options{}).Run
		}, nil})
	}
	if !b.NoServiceAccounts {
		out = append(out, part{manager, func(c *apiclient.Client) func(context.Context) error {
			return accounts.New(c, accounts.Options{CA: ca}).Run
		}, nil})
	}
	if !b.NoDisruptionBudgets {
		out = append(out, part{manager, func(c *apiclient.Client) func(context.Context) error {
			return disruption.New(c, disruption.Options{}).Run
		}, nil})
	}
	if b.Workloads {
		out = append(out, part{manager, func(c *apiclient.Client) func(context.Context) error {
			return workloads.New(c, workloads.Options{}).Run
		}, nil})
	}
	if b.Nodes != nil {
		out = append(out, part{"kubelet", func(c *apiclient.Client) func(context.Context) error {
			return func(ctx context.Context) error { return b.Nodes.Run(ctx, c) }
		}, nil})
	}
	if b.Stages != nil {
		out = append(out, part{"kubelet", func(c *apiclient.Client) func(context.Context) error {
			return stages.New(c, b.Stages.list, b.Stages.report).Run
		}, nil})
	}
	return out
}

// behave runs the controllers and the parts until ctx ends. If the server serves several listeners, they run once.
// In a fork, they begin with the first request or the first change.
func (c *Cluster) behave(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil
	}
	select {
	case <-c.woken:
	case <-c.written:
	case <-ctx.Done():
		return nil
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, run := range c.controllers {
		all.Go(func() error { return run(ctx) })
	}
	all.Go(func() error { return c.runParts(ctx) })
	return all.Wait()
}

// runParts runs the parts until ctx ends. When another state replaces the present one, all parts start again, as after
// a restart of the server. A part that went on would mix both states: its caches, its expectations and its pauses after
// failures belong to the earlier one. The price: simulated nodes that a test has deleted come back.
//
// The new parts do not wait for the end of the earlier ones, because a request that is in progress can take seconds:
// the admission of a pod waits for its service account, which a new part creates.
func (c *Cluster) runParts(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for ctx.Err() == nil {
		restored := c.objects.NextRestore()
		parts, err := c.newParts(restored)
		if err != nil {
			return errors.Join(err, all.Wait())
		}
		present, cancel := context.WithCancel(ctx)
		for _, run := range parts {
			all.Go(func() error {
				err := run(present)
				select {
				case <-restored: // it may have failed because its objects are gone
					return nil
				default:
					return err
				}
			})
		}
		select {
		case <-restored:
		case <-ctx.Done():
		}
		cancel()
	}
	return all.Wait()
}

// newParts returns the parts for a state, which send no requests after it was replaced.
func (c *Cluster) newParts(replaced <-chan struct{}) (out []func(context.Context) error, err error) {
	for _, p := range c.options.Behaviour.parts(c.options.Lenient, c.Server.CA(), c.objects.Garbage()) {
		client, err := apiclient.New(apiclient.Config{
			Host: c.Server.URL(), Transport: ofState{c.Server.ControlPlane(), replaced}, UserAgent: p.name + "/v1.37.2",
			BearerToken: apiclient.NewSecret(c.token),
		})
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		out = append(out, func(ctx context.Context) error {
			if p.from != nil {
				select {
				case <-p.from:
				case <-ctx.Done():
					return nil
				}
			}
			return p.run(client)(ctx)
		})
	}
	return out, nil
}

// ofState sends the requests of a part until its state was replaced. Otherwise the part would write into the next state
// what it had derived from its own one, in the moment before it ends.
type ofState struct {
	http.RoundTripper
	replaced <-chan struct{}
}

var errReplaced = errors.New("cluster: another state has replaced the one of this part")

// RoundTrip sends a request.
func (t ofState) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-t.replaced:
		if r.Body != nil {
			_ = r.Body.Close() // nobody reads it
		}
		return nil, errReplaced
	default:
		return t.RoundTripper.RoundTrip(r)
	}
}
