package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testserver"
)

// A program makes the manager and gives it the parts. Its controller works on one replica at a time.
func Example() {
	server := testserver.New(testserver.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = server.Run(ctx) }()
	configMaps := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	mill := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mill"}}
	if _, err := server.Create(configMaps, mill); err != nil {
		fmt.Println(err)
		return
	}

	p, err := program.New(program.Options{ // and Manager.Admin: manager.AdminOptions{Address: ":8081"}
		Name: "greeter", Lease: api.Key{Namespace: "default", Name: "greeter"}, Logger: zap.NewNop(),
		Config: apiclient.Config{Host: server.URL(), Transport: server.Client().Transport},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	maps := program.Typed(p, configMaps, informer.Options[*corev1.ConfigMap]{})
	greet := controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
		ready := httptest.NewRecorder()
		p.Manager.Readyz().ServeHTTP(ready, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
		fmt.Print("hello, ", key.Name, "\n", ready.Body)
		stop()
		return controller.Result{}, nil
	})
	program.Controller(p, "greeter", greet, controller.For(maps.Informer()))
	fmt.Println(manager.UntilSignal(ctx, p.Run))
	// Output:
	// hello, mill
	// [+]ping ok
	// [+]informer-sync ok
	// [+]shutdown ok
	// readyz check passed
	// <nil>
}

// Runnables and checks can be removed while the manager runs.
func ExampleRunnableRegistration() {
	m, err := manager.New(manager.Options{ShowReasons: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	part := manager.Func(func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	registration, err := m.AddWith(part, manager.Placement{Name: "poller", Group: manager.Others})
	if err != nil {
		fmt.Println(err)
		return
	}
	disk := func(context.Context) error { return errors.New("the disk is full") }
	if err := m.Healthz().Add("disk", disk); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	<-m.Elected()

	get := func(path string) {
		answer := httptest.NewRecorder()
		m.AdminHandler(manager.AdminOptions{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(answer.Code, answer.Body)
	}
	get("/healthz/disk")
	m.Healthz().Remove("disk")
	get("/healthz")

	registration.Remove()
	<-registration.Done()
	fmt.Println(registration.Name(), registration.Group(), registration.Err())
	stop()
	fmt.Println(<-ended)
	// Output:
	// 500 internal server error: the disk is full
	// 200 ok
	// poller others <nil>
	// <nil>
}
