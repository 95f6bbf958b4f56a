package events_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/testserver"
)

func Example() {
	server := testserver.New(testserver.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		fmt.Println(err)
		return
	}

	rec, err := events.New(client, events.Options{Controller: "example.org/mill", CoreV1: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	rec.Warning(pods, &metav1.ObjectMeta{Namespace: "shop", Name: "web"}, "FailedMount", "no such volume: %s", "data")

	running, end := context.WithCancel(ctx)
	end() // Run writes the waiting Events anyway
	fmt.Println(rec.Run(running))

	written, _ := server.List(api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}, "shop")
	fmt.Println(written[0].Object["reason"], written[0].Object["message"])
	// Output:
	// <nil>
	// FailedMount no such volume: data
}
