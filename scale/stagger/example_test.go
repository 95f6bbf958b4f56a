package stagger_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/stagger"
	"github.com/leatproject/leat/testserver"
)

// The agent of a node reads the pods of its node. A fleet of such agents may start at the same time.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := testserver.New(testserver.Options{})
	for _, node := range []string{"node-1", "node-2"} {
		p := &pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-of-" + node}}
		p.Spec.NodeName = node
		_, _ = server.Create(pods, p)
	}
	go func() { _ = server.Run(ctx) }()

	client, err := apiclient.New(stagger.Config(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport}))
	if err != nil {
		panic(err)
	}
	start := stagger.NewStart(stagger.Options{Jitter: 10 * time.Millisecond, MaxLists: 1}) // a minute for thousands of agents
	inf := informer.New(stagger.ForNode(start, "node-1", apiclient.NewPartial[*pod](client, pods, ""), informer.Options[*pod]{}))
	go func() { _ = inf.Run(ctx) }()
	<-inf.Synced()
	for _, p := range inf.Cache().List() {
		fmt.Println(p.Name)
	}
	// Output: web-of-node-1
}
