package docs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// Pod declares what this agent looks at. Everything else is skipped while it is read, and never stored.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func run(ctx context.Context, client *apiclient.Client, namespace string) error {
	resource, err := discovery.Lookup(ctx, client, "pods")
	if err != nil {
		return err
	}
	pods := informer.New(apiclient.NewPartial[*Pod](client, resource, namespace), informer.Options[*Pod]{})
	byNode := informer.AddIndex(pods, func(p *Pod) []string { return []string{p.Spec.NodeName} })

	c := controller.New("neighbours", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		if pod, ok := pods.Cache().Get(key); ok {
			fmt.Printf("%s has %d neighbours\n", key, byNode.Len(pod.Spec.NodeName)-1)
		}
		return controller.Result{}, nil
	}), controller.Options{Workers: 4})
	c.Watch(controller.For(pods).When(predicate.ResourceVersionChanged))

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return pods.Run(ctx) })
	g.Go(func() error { return c.Run(ctx) })
	return g.Wait()
}

// TestReadmeExampleRuns runs the example against a server until its context ends.
func TestReadmeExampleRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := testserver.New(testserver.Options{})
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, client, "default") }()
	watching := server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Delay{}})
	require.NoError(t, watching.Wait(ctx, 1), "it watches pods")
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-served)
}
