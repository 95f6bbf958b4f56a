package websocket_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/testserver"
)

// The result of Watch is a ListerWatcher for an informer, or for a loop.
func Example() {
	s := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = s.Run(ctx) }()

	client, err := apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport})
	if err != nil {
		fmt.Println(err)
		return
	}
	namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	lw := websocket.Watch(apiclient.NewPartial[*metav1.PartialObjectMetadata](client, namespaces, ""))
	for event, err := range lw.Watch(ctx, api.Options[*metav1.PartialObjectMetadata]{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Object.Name)
		break
	}
	// Output: ADDED default
}
