package shardedsource_test

import (
	"context"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
)

// Example lists both halves of ten objects, from a server that ignores the shardSelector.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := testserver.New(testserver.Options{})
	go func() { _ = server.Run(ctx) }()
	for n := range 10 {
		if _, err := server.Create(configMaps, &object{ObjectMeta: fixture.Meta("default", fmt.Sprint("m", n))}); err != nil {
			panic(err)
		}
	}
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		panic(err)
	}
	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
	total := 0
	for _, hashes := range []hashrange.Set{half, hashrange.All().Minus(half)} {
		source := shardedsource.New(apiclient.NewPartial[*object](client, configMaps, ""), hashrange.UID, hashes, shardedsource.Options{})
		_, err := source.List(ctx, api.Options[*object]{}, func(*object) error { total++; return nil })
		s := source.Shard()
		fmt.Println("cut by the", s.By, s.Dropped > 0, s.Reason, err)
	}
	fmt.Println(total, "objects")
	// Output:
	// cut by the client true the server ignores the shardSelector; kube-apiserver needs the feature gate ShardedListAndWatch <nil>
	// cut by the client true the server ignores the shardSelector; kube-apiserver needs the feature gate ShardedListAndWatch <nil>
	// 10 objects
}

// ExampleNewScopes has an informer that follows the ranges of a replica. A shard.Member calls Follow.
func ExampleNewScopes() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := testserver.New(testserver.Options{ShardedLists: true})
	go func() { _ = server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		panic(err)
	}
	set := scopes.New(configMaps, scopes.Options[*object]{})
	streams := shardedsource.NewScopes(set, apiclient.NewPartial[*object](client, configMaps, ""), hashrange.UID, shardedsource.Options{})
	streams.Follow(hashrange.NewSet(hashrange.Range{To: 1 << 62}, hashrange.Range{From: 1 << 63}))
	running, stop := context.WithCancel(ctx)
	stop()
	fmt.Println(streams.Run(running)) // beside the set, until the program ends
	fmt.Println(set.Names())
	// Output:
	// <nil>
	// [0x0000000000000000-0x4000000000000000 0x8000000000000000-0x10000000000000000]
}
