// Package testserver is a Kubernetes API server in memory. Tests use it instead of a cluster; `leat demo` and `leat
// serve` run it. It speaks HTTP, HTTP/2, TLS and WebSocket, also in a testing/synctest bubble, and it misbehaves on
// demand. A test can change and read the state without HTTP: see Create, Update, Edit, Delete, Get, List, Snapshot.
//
// Read options.go and server.go for the server, handler.go for the way of a request, and watch.go for watches. Package
// faults says what can go wrong. The packages below internal have the rest: internal/store keeps versions and history,
// internal/writer has the rules of writes, and internal/wire reads requests and encodes answers.
//
// # Example
//
//	server := testserver.New(testserver.Options{})
//	go server.Run(ctx) // serves Client and Dial until ctx ends
//	fault := server.Inject(faults.Fault{Times: 1, Effect: faults.Fail{Code: 429}})
//	res, err := server.Client().Get(server.URL() + "/api/v1/pods") // 429 once, then 200
//	err = fault.Wait(ctx, 1)                                       // blocks until a client got the 429
//
// See Example and ExampleServer_Inject.
//
// # Promises
//
//  1. A watch from a version sends exactly the later changes, in order, each as its selectors see it. Compaction takes
//     nothing from an open watch.
//  2. All pages of a list, and every exact list, show one version. If the history does not reach back to it, the answer
//     is 410.
//  3. A write that changes nothing writes nothing, a write that is based on an old version is a conflict, and a dry run
//     changes nothing.
//  4. Equal options and equal requests give equal answers, byte for byte.
//  5. Every fault does what its comment says. Injection.Seen counts only effects that reached a client.
//  6. A client that lists, watches, and lists again after a 410 ends with the state of the server, whatever faults it
//     met.
//  7. Run returns soon after its context ends, in every state of the server, and leaves no goroutine behind.
//  8. On a listener, a web page of another origin cannot read, write or watch, and slow clients are disconnected.
//     Programs get the answers of kube-apiserver.
//
// # Fidelity
//
// Answers follow kube-apiserver 1.37 and were compared with a real one: status codes, reasons, causes, resource
// versions, selectors, pagination, bookmarks, WatchLists, finalizers, grace periods, server-side apply, and the order
// of fields in JSON. docs/fidelity.md counts the requests that both answer in the same way, and e2e/compare lists every
// difference.
//
// Controllers do not run. Their work happens at once: a CustomResourceDefinition is established when it is created, and
// its resource ends with it; a deleted namespace takes its objects along, unless Options.NamespaceLifecycle is set.
// Containers log what AppendLog writes.
//
// The server has no schemas. So it sets no defaults, validates only the metadata of objects, and refuses a strategic
// merge patch (415). Server-side apply merges the lists of metadata alone: any other list has one owner, and a forced
// apply replaces it. These are missing too: protobuf and CBOR; columns of a Table except Name and Age; admission;
// OpenAPI; garbage collection. The module testserver/cluster adds all of this, for the price of Kubernetes'
// dependencies.
//
// # Concurrency
//
// All methods may be called on any goroutine. One lock guards the state; it is never held during I/O or while a request
// waits. Only Run, Serve, Dial and Injection.Wait block, until their context ends.
//
// The server needs the goroutines of net/http, and two more for each watch over a WebSocket. A watch is a cursor in the
// history that its request's goroutine moves. A client that does not read blocks only the goroutine of its own request.
// Run and Serve return after all these goroutines have ended.
//
// In a synctest bubble, create the server inside the bubble. Close the body of every answer that is not read to its
// end; otherwise net/http keeps goroutines for it.
//
// # Differences from client-go
//
// The fake clientsets of client-go and its fake source of controllers have no HTTP, no history and no versions that
// expire. The envtest of controller-runtime needs two processes and the real clock; its only failure is to be killed.
package testserver
