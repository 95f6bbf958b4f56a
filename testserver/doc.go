// Package testserver is a Kubernetes API server in memory: what `leat demo` and `leat serve` run when there is no
// cluster, and the bench on which everything else is tested.
//
// # Place in the pipeline
//
// Before the first stage: it is the API server that apiclient talks to. A Server answers over an http.Client whose
// connections are pipes in memory, so that the whole pipeline, TLS, HTTP/2 and WebSocket included, runs on the fake
// clock of a testing/synctest bubble, and over real listeners with the same store behind them.
//
// # Guarantees
//
//  1. A watch from a version sends exactly the later changes, in order (TestListThenWatch).
//
// # Concurrency
//
// A Server is safe for concurrent use. All state is under one lock, which no I/O and no waiting is done under. Serving
// costs net/http's goroutines and nothing more: a watch is a cursor in the history, moved by the goroutine of its own
// request; a WebSocket has two goroutines, which its request waits for. Run and Serve return once all of them are gone.
// A client that does not read blocks the goroutine of its own request, in a sync.Cond, and nobody else.
//
// # Differences from client-go
//
// client-go's fake clientsets and its fake source of controllers have no HTTP, no history and no versions to expire;
// controller-runtime's envtest needs two processes and the real clock.
package testserver
