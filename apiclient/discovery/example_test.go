package discovery_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/testserver"
)

// A mapper takes names that a person types, and kinds and resources that objects refer to.
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
	mapper := discovery.New(client, discovery.Options{})
	for _, typed := range []string{"po", "deploy", "deployments.v1.apps"} {
		r, err := mapper.Lookup(ctx, typed)
		fmt.Println(r.GroupVersionKind(), r.Namespaced, err)
	}
	owner, err := mapper.ForKind(ctx, schema.GroupVersionKind{Group: "apps", Kind: "ReplicaSet"})
	fmt.Println(owner.GroupVersionResource().String(), err)

	_, err = mapper.Lookup(ctx, "pdos")
	fmt.Println(err, errors.Is(err, discovery.ErrUnknownResource))
	// Output:
	// /v1, Kind=Pod true <nil>
	// apps/v1, Kind=Deployment true <nil>
	// apps/v1, Kind=Deployment true <nil>
	// apps/v1, Resource=replicasets <nil>
	// unknown resource "pdos", did you mean "pods"? true
}
