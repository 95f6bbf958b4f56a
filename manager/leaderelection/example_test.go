package leaderelection_test

import (
	"context"
	"fmt"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/manager/leaderelection"
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

	elector, err := leaderelection.New(client, leaderelection.Options{Namespace: "default", Name: "mill", Identity: "replica-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = elector.Run(ctx, func(ctx context.Context) error {
		fmt.Println(elector.Leader(), "leads") // a real program works here until ctx ends
		return nil
	})
	fmt.Println(err, elector.Leader() == "")
	// Output:
	// replica-1 leads
	// <nil> true
}
