package program_test

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/testserver"
)

// A program greets every ConfigMap. A real one needs only a Name in its options.
func Example() {
	server := testserver.New(testserver.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = server.Run(ctx) }()
	_, err := server.Create(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mill"}})
	if err != nil {
		fmt.Println(err)
		return
	}

	p, err := program.New(program.Options{
		Name: "greeter", Logger: zap.NewNop(),
		Config: apiclient.Config{Host: server.URL(), Transport: server.Client().Transport},
		Check:  driftcheck.Every(time.Hour), // of every cache; only for programs that must notice a server's mistakes
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects := program.Typed(p, configMaps, maps{}) // maps is informer.Options[*corev1.ConfigMap]
	greet := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		object, err := objects.Get(ctx, key)
		if err == nil {
			fmt.Println("hello,", object.Name)
			stop()
		}
		return controller.Result{}, err
	})
	program.Controller(p, "greeter", greet, controller.For(objects.Informer()))
	fmt.Println(p.Run(ctx))
	// Output:
	// hello, mill
	// <nil>
}
