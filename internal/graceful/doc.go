// Package graceful runs an http.Server until a context ends, and ends it in order.
//
// # Promises
//
//  1. Requests in flight have a bounded time after the end of the context. Then their contexts end, and their
//     connections are closed.
//  2. When Serve returns, no call of the handler is in flight, and none begins.
//
// # Concurrency
//
// Serve blocks. It starts one goroutine, and net/http starts one for each connection.
package graceful
