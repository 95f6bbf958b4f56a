package docs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// Pod declares what this program looks at. Everything else is skipped while it is read, and never stored.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

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

// TestReadmeExampleRuns runs the example against a server until its context ends.
func TestReadmeExampleRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := testserver.New(testserver.Options{})
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, program.Options{Name: "neighbours", Client: client, Logger: zap.NewNop()}) }()
	watching := server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Delay{}})
	require.NoError(t, watching.Wait(ctx, 1), "it watches pods")
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-served)
}
