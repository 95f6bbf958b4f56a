package discovery_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/testserver"
)

// Lookup takes what a person types.
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
	r, err := discovery.Lookup(ctx, client, "deployments.apps")
	fmt.Println(r.GroupVersionKind(), r.Namespaced, err)

	_, err = discovery.Lookup(ctx, client, "podz")
	fmt.Println(err, errors.Is(err, discovery.ErrUnknownResource))
	// Output:
	// apps/v1, Kind=Deployment true <nil>
	// unknown resource "podz" true
}
