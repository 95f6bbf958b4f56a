package accessreview_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"go.uber.org/zap"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/accessreview"
)

// The metrics of a manager are served to clients with a token that may read them.
func ExampleFilter() {
	client, err := apiclient.New(apiclient.Config{Host: "https://kubernetes.default.svc"})
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := accessreview.New(accessreview.Options{Client: client, Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics := http.NotFoundHandler() // mostly that of package metrics
	handler := filter.Handler(metrics)
	m, err := manager.New(manager.Options{Admin: manager.AdminOptions{Address: "127.0.0.1:8081", Metrics: handler}})
	fmt.Println(m != nil, err)

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	fmt.Println(answer.Code)
	// Output:
	// true <nil>
	// 401
}
