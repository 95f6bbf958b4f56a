// Package accessreview admits HTTP requests that the API server allows. A client sends the bearer token of a service
// account; the filter asks the API server who it is (TokenReview) and whether it may read the path
// (SubjectAccessReview). Use it for /metrics, which may say more than everybody should know.
//
// # Example
//
//	filter, err := accessreview.New(accessreview.Options{Client: client})
//	handler := filter.Handler(metrics.Handler(registry))
//	server, err := manager.NewServer("metrics", manager.ServerOptions{Address: ":8443", TLS: tls, Handler: handler})
//
// A ClusterRole with nonResourceURLs: [/metrics] and verbs: [get] allows Prometheus to read it. Serve it with TLS,
// because everybody who reads a token can use it. Package program also serves /metrics at the admin address, without
// the filter; set AdminOptions.Metrics to http.NotFoundHandler() to prevent that. See ExampleFilter.
//
// # Promises
//
//  1. A request without a valid token gets 401, and one whose user lacks the permission gets 403. Both reviews are
//     those of the API server.
//  2. If the API server does not answer, the request gets 503. It is never admitted without a review.
//  3. An answer is used again for a minute; a failure is not. The memory of kept answers has a limit, and requests that
//     are refused do not remove the answers of others.
//  4. A token is neither logged nor kept.
//
// # Concurrency
//
// A Filter is safe for concurrent use. It works on the goroutines of requests and starts none. It holds no lock during
// a review, so several requests at the same moment may be reviewed several times.
//
// # Differences from client-go
//
// controller-runtime has the filter WithAuthenticationAndAuthorization, which links the authentication of
// kube-apiserver. Here, only bearer tokens are accepted, and not client certificates.
package accessreview
