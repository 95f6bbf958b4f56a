package main

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/program"
)

// Pod declares what this program looks at. Everything else is skipped while it is read, and never stored. It is read
// from JSON; docs/agent.md shows the tags for protobuf.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func main() {
	if err := run(context.Background(), program.Options{Name: "neighbours"}); err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o program.Options) error {
	p, err := program.New(o) // a client, a logger, metrics and a manager
	if err != nil {
		return err
	}
	pods := program.Partial(p, podsResource, informer.Options[*Pod]{}) // reads a cache, writes to the server
	byNode := informer.AddIndex(pods.Informer(), func(p *Pod) []string { return []string{p.Spec.NodeName} })

	reconcile := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		if pod, err := pods.Get(ctx, key); err == nil {
			fmt.Printf("%s has %d neighbours\n", key, byNode.Len(pod.Spec.NodeName)-1)
		}
		return controller.Result{}, nil
	})
	program.Controller(p, "neighbours", reconcile, controller.For(pods.Informer()).When(predicate.ResourceVersionChanged))
	return manager.UntilSignal(ctx, p.Run)
}
