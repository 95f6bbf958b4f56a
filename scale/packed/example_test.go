package packed_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver"
)

// The cache has bytes, so a reader may change what it gets.
func Example() {
	server := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = server.Run(ctx) }()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if _, err := server.Create(pods, pod); err != nil {
		log.Fatal(err)
	}
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		log.Fatal(err)
	}

	i := informer.New(apiclient.NewTyped[*corev1.Pod](client, pods, ""), informer.Options[*corev1.Pod]{Hold: packed.Bytes[*corev1.Pod]()})
	go func() { _ = i.Run(ctx) }()
	<-i.Synced()
	key := api.Key{Namespace: "default", Name: "web"}
	mine, _ := i.Cache().Get(key)
	mine.Spec.NodeName = "changed"
	again, _ := i.Cache().Get(key)
	fmt.Printf("%q %q\n", mine.Spec.NodeName, again.Spec.NodeName)
	// Output: "changed" ""
}
