package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/scale/stagger"
)

func main() {
	a, err := newAgent(program.Options{
		Name:    "nodeagent",
		Config:  stagger.Config(apiclient.Config{}), // bounds an object by GOMEMLIMIT; the server is the pod's
		Manager: manager.Options{Admin: manager.AdminOptions{Address: ":8081"}},
	}, os.Getenv("NODE_NAME"), os.Stdout)
	if err == nil {
		err = manager.UntilSignal(context.Background(), a.program.Run)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeagent:", err)
		os.Exit(1)
	}
}

// agent knows the pods of one node.
type agent struct {
	program *program.Program
	pods    *factory.Share[*Pod]
	out     io.Writer
}

func newAgent(o program.Options, node string, out io.Writer) (*agent, error) {
	if node == "" {
		return nil, fmt.Errorf("NODE_NAME is empty; the manifest sets it from spec.nodeName")
	}
	p, err := program.New(o)
	if err != nil {
		return nil, err
	}
	// 5,000 agents spread their first lists over a minute, and each has only the pods of its node.
	start := stagger.NewStart(stagger.Options{Jitter: time.Minute})
	source, options := stagger.ForNode(start, node, apiclient.NewPartial[*Pod](p.Client, podsResource, ""), informer.Options[*Pod]{})
	pods, err := factory.Shared(p.Informers, source, options)
	if err != nil {
		return nil, err
	}
	// An agent whose cache is old is not ready. It continues to work with the old cache.
	if err := p.Manager.Readyz().Add("heard", manager.HeardWithin(5*time.Minute, p.Informers.Status)); err != nil {
		return nil, err
	}
	a := &agent{program: p, pods: pods, out: out}
	program.Controller(p, "pods", a, controller.For(pods))
	return a, nil
}

// Reconcile prints the address of a pod.
func (a *agent) Reconcile(_ context.Context, key api.Key) (controller.Result, error) {
	text := "no address"
	if pod, ok := a.pods.Cache().Get(key); ok && pod.Status.Phase == "Running" {
		text = pod.Status.PodIP
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", key, text)
	return controller.Result{}, err
}
