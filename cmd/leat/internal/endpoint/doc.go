// Package endpoint serves the live page and the metrics of a command, on the addresses of its flags.
//
// # Promises
//
//  1. Web pages of other origins get nothing.
//  2. Without an address there is no server, and the methods of nil do nothing.
//
// # Concurrency
//
// During blocks. All methods may be called on any goroutine.
package endpoint
