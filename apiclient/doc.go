// Package apiclient is the client of a Kubernetes API server. It sends requests, lists, watches and writes objects, and
// decodes them as the types of the caller. Package reflector and package informer use it through api.ListerWatcher,
// which NewTyped and NewPartial return.
//
// Read config.go and client.go for the connection, partial.go, typed.go and watch.go for the verbs, endpoint.go and
// request.go for a request, status.go and errors.go for failures. How a request is sent is the work of the packages
// below, which know nothing of objects: internal/call repeats, limits and observes, internal/transport connects,
// internal/auth has credentials that rotate, and internal/secret hides them. The other packages below are for programs
// that need them: kubeconfig, exec, discovery and websocket.
//
// # Example
//
//	cfg, err := apiclient.InCluster() // or kubeconfig.Load
//	client, err := apiclient.New(cfg)
//	pods := apiclient.NewTyped[*corev1.Pod](client, podResource, "default")
//	pod, err := pods.Get(ctx, api.Key{Name: "web"}, metav1.GetOptions{})
//
// See Example, ExampleNewPartial, ExamplePartialClient_Apply, ExampleSubresource, ExampleAll and ExampleRequest.
//
// # Promises
//
//  1. A list or a watch sends one request. Any other call is repeated only if the server asks for it or the connection
//     is lost, and only if the server cannot carry it out twice. The number of repetitions and their duration are
//     bounded. If the server refuses a credential, the client replaces it and sends the call once more.
//  2. Lists arrive item by item and watches event by event, also if they are compressed. No body is held whole, and no
//     answer takes more memory than MaxObjectBytes allows.
//  3. A partial T is never written back whole. A PartialClient has no Create, Update or UpdateStatus.
//  4. An answer that is not successful is a *apierrors.StatusError, also if a proxy sent it. Other failures have types
//     too. Errors are wrapped once with the operation, have about a kilobyte, and quote nothing of an object.
//  5. The end of a context ends the call at once, in every state, and leaves nothing behind.
//  6. A long answer is never cut. A watch on a dead connection ends after 45 seconds. A watch also ends if the server
//     no longer sends bookmarks.
//  7. No credential is printed, logged, marshalled or quoted in an error, also if a server or a proxy echoes it,
//     unless it has less than four bytes. No credential follows a redirect to another host or scheme.
//  8. Tokens, client certificates and authorities rotate without a restart. A request uses a new file after five
//     seconds at most, and at once after a 401. A watch in flight continues.
//
// # Concurrency
//
// Clients are safe for concurrent use and hold no lock while they wait. Every call blocks until it has its answer. The
// functions of List, and the loop of Watch, run on the caller's goroutine. This package owns no goroutine. Those of
// net/http end with the request, or, for idle connections, after 90 seconds or at CloseIdleConnections. A client need
// not be closed. A request may read the files of its Config under a lock. Hooks run without a lock and may call the
// client.
//
// # Differences from client-go
//
//   - No limit on the rate of requests and no overall time limit by default. Retry-After may be a date; waits are
//     spread.
//   - A write is not repeated after a 5xx that may come from a proxy. A watch that is silent for too long is ended.
//   - One hook gets each request, instead of a dozen global metrics.
//   - Errors name the operation, and the certificate of the server if that is the cause.
//   - Rotation needs no goroutine and closes no connection in use. client-go closes all connections when a client
//     certificate changes.
//   - An HTTPS proxy does not get the client certificate, and its own name is verified.
//   - Objects are decoded while the answer arrives. Compressed watches are not one event late.
//   - Methods take an object's key. Its namespace must agree with the client's.
package apiclient
