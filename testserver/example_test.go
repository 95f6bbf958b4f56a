package testserver_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// This example starts a server in memory and watches ConfigMaps.
func Example() {
	srv := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	configMaps := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	wheel := map[string]any{"metadata": map[string]any{"name": "wheel", "namespace": "mill"}, "data": map[string]any{"teeth": "48"}}
	if _, err := srv.Create(configMaps, wheel); err != nil {
		fmt.Println(err)
	}

	res, err := srv.Client().Get(srv.URL() + "/api/v1/configmaps?watch=1&timeoutSeconds=1&allowWatchBookmarks=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		fmt.Println(lines.Text()[:60])
	}
	res.Body.Close()
	cancel()
	fmt.Println(<-done)
	// Output:
	// {"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v
	// {"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion"
	// <nil>
}

// This example lets the server reject the second list of pods, and counts the rejections.
func ExampleServer_Inject() {
	srv := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	fault := srv.Inject(faults.Fault{
		Match:  faults.Match{Verbs: []string{"list"}, Resource: "pods"},
		Skip:   1,
		Times:  1,
		Effect: faults.Fail{Code: http.StatusTooManyRequests},
	})
	client := srv.Client()
	for range 3 {
		res, err := client.Get(srv.URL() + "/api/v1/pods")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Status)
		res.Body.Close()
	}
	fmt.Println("seen:", fault.Seen())
	cancel()
	fmt.Println(<-done)
	// Output:
	// 200 OK
	// 429 Too Many Requests
	// 200 OK
	// seen: 1
	// <nil>
}
