package main

import (
	"context"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
)

// Pod has the fields that this program reads. leat skips all others while it reads the answer.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

var layers = map[string]func(context.Context, *apiclient.Client, io.Writer) error{
	"client": list, "informer": watch, "index": count, "controller": reconcile, "program": runProgram,
}

func main() {
	err := manager.UntilSignal(context.Background(), func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 || layers[args[0]] == nil {
		return fmt.Errorf("name a layer: client, informer, index, controller or program")
	}
	config, _, err := kubeconfig.Load(ctx, kubeconfig.Options{}) // the server that kubectl would use
	if err != nil {
		return err
	}
	client, err := apiclient.New(config)
	if err != nil {
		return err
	}
	return layers[args[0]](ctx, client, os.Stdout)
}

func list(ctx context.Context, client *apiclient.Client, out io.Writer) error {
	pods := apiclient.NewPartial[*Pod](client, podsResource, "") // of all namespaces
	_, err := pods.List(ctx, api.Options[*Pod]{}, func(p *Pod) error {
		_, err := fmt.Fprintf(out, "%s is on %s\n", p.Name, p.Spec.NodeName)
		return err
	})
	return err
}

func watch(ctx context.Context, client *apiclient.Client, out io.Writer) error {
	pods := informer.New(apiclient.NewPartial[*Pod](client, podsResource, ""), informer.Options[*Pod]{})
	_, err := pods.Subscribe(func(change api.Change[*Pod]) {
		_, _ = fmt.Fprintf(out, "%s %s\n", change.Type, change.Object.Name)
	}, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}

func count(ctx context.Context, client *apiclient.Client, out io.Writer) error {
	pods := informer.New(apiclient.NewPartial[*Pod](client, podsResource, ""), informer.Options[*Pod]{})
	byNode := informer.AddIndex(pods, func(p *Pod) []string { return []string{p.Spec.NodeName} })
	_, err := pods.Subscribe(func(change api.Change[*Pod]) {
		_, _ = fmt.Fprintf(out, "%d pods on the node of %s\n", byNode.Len(change.Object.Spec.NodeName), change.Object.Name)
	}, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}

func reconcile(ctx context.Context, client *apiclient.Client, out io.Writer) error {
	pods := informer.New(apiclient.NewPartial[*Pod](client, podsResource, ""), informer.Options[*Pod]{})
	c := controller.New("quickstart", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
		_, cached := pods.Cache().Get(key)
		_, err := fmt.Fprintf(out, "reconcile %s: cached %v\n", key, cached)
		return controller.Result{}, err // an error: this key again, later
	}), controller.Options{})
	c.Watch(controller.For(pods))
	m, err := manager.New(manager.Options{}) // runs the informer before the controller, and ends it after
	if err != nil {
		return err
	}
	if err := m.Add(pods, c); err != nil {
		return err
	}
	return m.Run(ctx)
}

func runProgram(ctx context.Context, client *apiclient.Client, out io.Writer) error {
	p, err := program.New(program.Options{Name: "quickstart", Client: client})
	if err != nil {
		return err
	}
	pods := program.Partial(p, podsResource, informer.Options[*Pod]{})
	program.Controller(p, "quickstart", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		pod, err := pods.Get(ctx, key) // a copy from the cache
		if err == nil {
			_, err = fmt.Fprintf(out, "%s is on %s\n", key, pod.Spec.NodeName)
		}
		return controller.Result{}, err
	}), controller.For(pods.Informer()))
	return p.Run(ctx)
}
