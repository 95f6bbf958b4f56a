package apiclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
)

// started runs an API server in memory and returns the configuration of its client.
func started() (apiclient.Config, context.CancelFunc) {
	s := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = s.Run(ctx) }()
	return apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}, cancel
}

// A Client has a configuration; a TypedClient reads and writes typed objects of one resource.
func Example() {
	cfg, stop := started() // in a real program: kubeconfig.Load, or apiclient.InCluster
	defer stop()
	ctx := context.Background()

	client, err := apiclient.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	configMaps := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	r := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, "default")

	_, err = r.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "mill"}, Data: map[string]string{"wheels": "1"},
	}, metav1.CreateOptions{})
	fmt.Println("created:", err)
	_, err = r.Get(ctx, api.Key{Name: "weir"}, metav1.GetOptions{})
	fmt.Println("not found:", apierrors.IsNotFound(err))

	for event, err := range r.Watch(ctx, api.Options[*corev1.ConfigMap]{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Object.Name, event.Object.Data)
		break // closes the stream
	}
	// Output:
	// created: <nil>
	// not found: true
	// ADDED mill map[wheels:1]
}

// A type of the user can declare a part of an object. It can be read, but not written as a whole.
func ExampleNewPartial() {
	cfg, stop := started()
	defer stop()
	client, err := apiclient.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	view := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, namespaces, "")
	_, err = view.List(context.Background(), api.Options[*metav1.PartialObjectMetadata]{}, func(n *metav1.PartialObjectMetadata) error {
		fmt.Println(n.Name)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// default
	// kube-node-lease
	// kube-public
	// kube-system
}

// A server-side apply sets the fields of the intent and leaves the other fields unchanged.
func ExamplePartialClient_Apply() {
	cfg, stop := started()
	defer stop()
	client, err := apiclient.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	view := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, namespaces, "")
	intent := map[string]any{"metadata": map[string]any{"labels": map[string]string{"team": "millers"}}}
	o := apiclient.ApplyOptions{}
	o.FieldManager = "leat"
	after, err := view.Apply(context.Background(), api.Key{Name: "default"}, intent, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(after.Labels["team"])
	// Output: millers
}

// OnRequest gets each request when it has ended, for metrics or a log.
func ExampleRequest() {
	cfg, stop := started()
	defer stop()
	cfg.OnRequest = func(r apiclient.Request) {
		fmt.Println(r.Verb, r.Resource, "attempt", r.Attempt, "code", r.Code, "failed", r.Err != nil)
	}
	client, err := apiclient.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	_, _ = apiclient.NewPartial[*corev1.Pod](client, pods, "default").Get(context.Background(), api.Key{Name: "web"}, metav1.GetOptions{})
	_, _ = apiclient.NewPartial[*corev1.Pod](client, pods, "").List(context.Background(), api.Options[*corev1.Pod]{}, nil)
	// Output:
	// get pods attempt 1 code 404 failed true
	// list pods attempt 1 code 200 failed false
}

// A document is JSON that is not an object of a resource.
func ExampleClient_GetDocument() {
	cfg, stop := started()
	defer stop()
	client, err := apiclient.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	var version struct{ Major string }
	fmt.Println(client.GetDocument(context.Background(), "/version", &version), version.Major)
	// Output: <nil> 1
}

// logged is a RoundTripper that prints each request.
type logged struct{ next http.RoundTripper }

func (l logged) RoundTrip(req *http.Request) (*http.Response, error) {
	fmt.Println(req.Method, req.URL.Path, "token:", req.Header.Get("Authorization") != "")
	return l.next.RoundTrip(req)
}

// WrapTransport logs each attempt. The RoundTripper does not see the token.
func ExampleConfig() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Println("server: token:", req.Header.Get("Authorization") != "")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"major": "1"}`)
	}))
	defer server.Close()
	client, err := apiclient.New(apiclient.Config{
		Host: server.URL, BearerToken: apiclient.NewSecret("abc"),
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return logged{next} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	var version struct{ Major string }
	err = client.GetDocument(context.Background(), "/version", &version)
	fmt.Println(version.Major, err)
	// Output:
	// GET /version token: false
	// server: token: true
	// 1 <nil>
}
