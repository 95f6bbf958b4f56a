package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
)

// The admin server of a manager shows the series of a controller.
func Example() {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	mill := controller.New("mill", controller.Func[string](func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, nil
	}), controller.Options{Workers: 4})
	if _, err := m.Controller(mill); err != nil {
		fmt.Println(err)
		return
	}
	admin := manager.AdminOptions{Address: "127.0.0.1:8081", Metrics: metrics.Handler(registry)} // for manager.Options

	scrape := httptest.NewRecorder()
	admin.Metrics.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "controller_runtime_max") {
			fmt.Print(line)
		}
	}
	// Output: controller_runtime_max_concurrent_reconciles{controller="mill"} 4
}
