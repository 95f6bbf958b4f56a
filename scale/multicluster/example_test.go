package multicluster_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/scale/multicluster"
	"github.com/leatproject/leat/testserver"
)

// byHost sends requests to the test server of their host.
type byHost map[string]*testserver.Server

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	return b[r.URL.Host].Client().Transport.RoundTrip(r)
}

// start runs a server for each name. The ConfigMap default/mill is in each except the hub, whose Secrets name them.
func start(ctx context.Context, names ...string) (servers byHost, hub *apiclient.Client) {
	servers = byHost{"hub": testserver.New(testserver.Options{})}
	for _, name := range names {
		servers[name] = testserver.New(testserver.Options{})
		_, _ = servers[name].Create(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mill"}})
		_, _ = servers["hub"].Create(secrets, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{"cluster": "yes"}},
			Data:       map[string][]byte{"kubeconfig": []byte(config(name, "token"))},
		})
	}
	for _, server := range servers {
		go func() { _ = server.Run(ctx) }()
	}
	hub, err := apiclient.New(apiclient.Config{Host: "http://hub", Transport: servers})
	if err != nil {
		panic(err)
	}
	return servers, hub
}

// One controller reconciles the objects of two clusters. The Secrets of a hub name them.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	servers, hub := start(ctx, "east", "west")
	set, err := multicluster.New(hub, multicluster.Options{
		Namespace: "fleet", Selector: api.Selector{Labels: "cluster=yes"},
		Configure: func(_ string, c *apiclient.Config) { c.Transport = servers },
	})
	if err != nil {
		panic(err)
	}
	maps := multicluster.Inform(set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] {
		return apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "")
	}, informer.Options[*corev1.ConfigMap]{})
	reconciled := make(chan multicluster.Key)
	ctl := controller.New("maps", controller.Func[multicluster.Key](func(_ context.Context, key multicluster.Key) (controller.Result, error) {
		reconciled <- key
		return controller.Result{}, nil
	}), controller.Options{})
	ctl.Watch(multicluster.For(maps))
	go func() { _ = set.Run(ctx) }() // or add both to a manager
	go func() { _ = ctl.Run(ctx) }()

	fmt.Println(<-reconciled)
	fmt.Println(<-reconciled)
	_ = servers["hub"].Delete(secrets, api.Key{Namespace: "fleet", Name: "west"})
	fmt.Println("left:", <-reconciled)
	// Unordered output:
	// east: default/mill
	// west: default/mill
	// left: west: default/mill
}

// A source with predicates of its own, for keys of another type. Health says how each cluster is doing.
func ExampleFrom() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	servers, hub := start(ctx, "east")
	ready, err := manager.New(manager.Options{})
	if err != nil {
		panic(err)
	}
	set, err := multicluster.New(hub, multicluster.Options{
		Namespace: "fleet", Selector: api.Selector{Labels: "cluster=yes"}, Checks: ready.Readyz(),
		Configure: func(_ string, c *apiclient.Config) { c.Transport = servers },
	})
	if err != nil {
		panic(err)
	}
	maps := multicluster.Inform(set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] {
		return apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, c.Namespace())
	}, informer.Options[*corev1.ConfigMap]{})
	reconciled := make(chan string)
	ctl := controller.New("names", controller.Func[string](func(_ context.Context, name string) (controller.Result, error) {
		reconciled <- name
		return controller.Result{}, nil
	}), controller.Options{})
	ctl.Watch(multicluster.From(maps, func(c *multicluster.Cluster, objects controller.Informer[*corev1.ConfigMap]) controller.Source[string] {
		names := func(m *corev1.ConfigMap) []string { return []string{c.Name() + " has a " + m.Name} }
		return controller.Map(objects, names).When(func(change api.Change[*corev1.ConfigMap]) bool { return change.Object.Name != "" })
	}))
	go func() { _ = set.Run(ctx) }()
	go func() { _ = ctl.Run(ctx) }()

	fmt.Println(<-reconciled)
	for _, h := range set.Health() {
		fmt.Println(h.Cluster, h.Server, h.Synced, h.Err)
	}
	east, _ := maps.In("east")
	fmt.Println(east.Cache().Len(), "object")
	// Output:
	// east has a mill
	// east http://east true <nil>
	// 1 object
}
