package decisions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/examples/deployment/kubelet"
	"github.com/leatproject/leat/examples/deployment/replicas"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/workqueue"
)

// Record runs the controllers of the example until ctx ends. It writes what the server sends to a recording, and what
// the controller of Deployments decides to the log. The options need a Config; its connections use no protobuf.
func Record(ctx context.Context, o program.Options, simulated kubelet.Options, log *Log, to io.Writer) error {
	tape, err := recording.New(to, recording.Options{JSON: true, Wait: true})
	if err != nil {
		return err
	}
	o.Config.DisableProtobuf = true
	wrap := func(next http.RoundTripper) http.RoundTripper { return log.Wrap(tape.Wrap(next)) }
	if o.Config.Transport != nil {
		o.Config.Transport = wrap(o.Config.Transport)
	} else {
		o.Config.WrapTransport = wrap
	}
	p, err := program.New(o)
	if err != nil {
		return err
	}
	events, err := events.New(p.Client, events.Options{Controller: "deployment-controller", CoreV1: true})
	if err != nil {
		return err
	}
	deployments := program.Typed(p, workload.Deployments, informer.Options[*appsv1.Deployment]{})
	sets := program.Typed(p, workload.ReplicaSets, informer.Options[*appsv1.ReplicaSet]{})
	pods := program.Partial(p, workload.Pods, informer.Options[*workload.Pod]{})
	engine := p.Options().Controller
	p.Add(events)
	p.Add(rollout.New(log.Note(rollout.Options{
		Deployments: deployments, ReplicaSets: sets, Pods: pods, Recorder: events, Controller: engine,
	})))
	p.Add(replicas.New(replicas.Options{Client: p.Client, ReplicaSets: sets, Pods: pods, Recorder: events, Controller: engine}))
	simulated.Client, simulated.Pods, simulated.Controller = p.Client, pods, engine
	simulated.Controller.Queue.Bucket = workqueue.Bucket{QPS: -1}
	p.Add(kubelet.New(simulated))

	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	written := make(chan error, 1)
	go func() { written <- tape.Run(writing) }()
	err = p.Run(ctx)
	stop()
	err = errors.Join(err, <-written)
	if lost := tape.Stats().Lost; lost > 0 && err == nil {
		err = fmt.Errorf("decisions: the recorder lost parts of %d answers", lost)
	}
	return err
}
