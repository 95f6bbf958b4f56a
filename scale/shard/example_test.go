package shard_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/testserver"
)

// A program whose replicas divide the ConfigMaps by namespace. Each replica runs the same code.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := testserver.New(testserver.Options{})
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go server.Run(serving)
	server.Create(maps, &corev1.ConfigMap{ObjectMeta: meta("team-a", "settings")})

	client, _ := apiclient.New(apiclient.Config{Host: server.URL(), Transport: shard.Fence(server.Client().Transport)})
	member, _ := shard.New(client, shard.Options{
		Namespace: "default", Group: "mill", Identity: "replica-1", Field: hashrange.Namespace,
	})
	configs := informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, maps, ""), informer.Options[*corev1.ConfigMap]{})
	sharded := shard.For(member, configs)

	reconciler := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		fmt.Println("reconcile", key, "- may write:", shard.Valid(ctx) == nil)
		cancel()
		return controller.Result{}, nil
	})
	c := controller.New("config", sharded.Reconciler(reconciler), controller.Options{})
	c.Watch(sharded.Source())

	m, _ := manager.New(manager.Options{})
	m.Add(configs, c, member) // the member ends after the controller
	fmt.Println(m.Run(ctx))
	// Output:
	// reconcile team-a/settings - may write: true
	// <nil>
}

// Work that is not a controller's, and a follower of the ranges.
func ExampleMember_Begin() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := testserver.New(testserver.Options{})
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go server.Run(serving)
	client, _ := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	member, _ := shard.New(client, shard.Options{Namespace: "default", Group: "mill"})
	has := make(ranges, 1)
	defer member.Follow(has)()
	ended := make(chan error)
	go func() { ended <- member.Run(ctx) }()

	fmt.Println("the only replica has", <-has)
	_, end, ok := member.Begin(ctx, hashrange.Hash("a user's key"))
	fmt.Println("it may begin:", ok, "- reconciles:", member.Status().Work)
	end() // before that, no other replica gets the range
	cancel()
	fmt.Println(<-ended)
	// Output:
	// the only replica has 0x0000000000000000-0x10000000000000000
	// it may begin: true - reconciles: 1
	// <nil>
}

// ranges is a follower that sends its first ranges.
type ranges chan hashrange.Set

func (r ranges) Follow(held hashrange.Set) {
	select {
	case r <- held:
	default:
	}
}
