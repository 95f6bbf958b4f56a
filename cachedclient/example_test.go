package cachedclient_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/testserver"
)

// start runs a test server with two widgets, and an informer of them.
func start(ctx context.Context) (*apiclient.TypedClient[*widget], *informer.Informer[*widget]) {
	server := testserver.New(testserver.Options{})
	server.Register(widgets)
	for i, name := range []string{"mill", "leat"} {
		w := named(name, int64(i))
		w.Spec.Node = "n1"
		_, _ = server.Create(widgets, w)
	}
	go func() { _ = server.Run(ctx) }()
	c, _ := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	live := apiclient.NewTyped[*widget](c, widgets, "")
	i := informer.New(live, informer.Options[*widget]{})
	go func() { _ = i.Run(ctx) }()
	return live, i
}

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	live, cached := start(ctx)

	c := cachedclient.NewTyped(live, cached, cachedclient.Options{Overlay: true})
	list, _ := c.List(ctx, cachedclient.ListOptions{})
	for _, w := range list.Items {
		fmt.Println(w.Name)
	}
	key := api.Key{Namespace: "default", Name: "wheel"}
	_, err := c.Get(ctx, key)
	fmt.Println(apierrors.IsNotFound(err))
	_, _ = c.Create(ctx, named("wheel", 7), metav1.CreateOptions{})
	w, err := c.Get(ctx, key) // also if the cache does not have it yet
	fmt.Println(w.Spec.Size, err)
	// Output:
	// leat
	// mill
	// true
	// 7 <nil>
}

func ExampleGate() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	live, cached := start(ctx)
	c := cachedclient.NewTyped(live, cached, cachedclient.Options{})

	reconcile := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		_, _, err := c.Change(ctx, key, func(w *widget) error { // ctx tells the gate which reconcile writes
			w.Spec.Size = 10
			return nil
		})
		return controller.Result{}, err
	})
	gated := controller.Gated(reconcile, cachedclient.NewGate(cachedclient.GateOptions{}))

	key := api.Key{Namespace: "default", Name: "mill"}
	_, _ = gated.Reconcile(ctx, key) // a controller calls it, and reconciles other keys while the gate delays this one
	_, _ = gated.Reconcile(ctx, key)
	w, _ := c.Get(ctx, key)
	fmt.Println(w.Spec.Size)
	// Output: 10
}

func ExampleBy() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	live, cached := start(ctx)

	byNode := informer.AddIndex(cached, func(w *widget) []string { return []string{w.Spec.Node} })
	c := cachedclient.NewTyped(live, cached, cachedclient.Options{})
	page, _ := c.List(ctx, cachedclient.ListOptions{Limit: 1}, cachedclient.By(byNode, "n1"))
	for ; len(page.Items) > 0; page, _ = page.Next() {
		fmt.Println(page.Items[0].Name, page.Remaining)
	}
	// Output:
	// leat 1
	// mill 0
}

func ExampleTyped_CreateOrUpdate() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	live, cached := start(ctx)

	c := cachedclient.NewTyped(live, cached, cachedclient.Options{Overlay: true})
	for range 2 {
		w, result, err := c.CreateOrUpdate(ctx, named("wheel", 0), func(w *widget) error {
			w.Spec.Size = 3
			return nil
		})
		fmt.Println(w.Spec.Size, result, err)
	}
	// Output:
	// 3 created <nil>
	// 3 unchanged <nil>
}
