package otel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leatproject/leat/adapter/otel"
	"github.com/leatproject/leat/controller"
)

// A reconcile gets a span. A real program passes the exporters of OTLP, and adds the Telemetry to its manager.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	t, err := otel.New(otel.Options{Name: "mill", Spans: spans})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := otel.Reconciler(t, "mill", controller.Func[string](func(context.Context, string) (controller.Result, error) {
		fmt.Println("grinding")
		return controller.Result{}, nil
	}))
	_, err = r.Reconcile(context.Background(), "north")
	fmt.Println(err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(t.Run(ctx))
	// Output:
	// grinding
	// <nil>
	// <nil>
}
