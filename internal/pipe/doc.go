// Package pipe is the network of a server in memory: a listener, and connections that behave like TCP connections.
//
//	l := pipe.Listen()
//	go http.Serve(l, handler)
//	conn, err := l.Dial(ctx) // returns after the server accepted the connection
//
// It also resets connections of every kind, as a server does that crashes: see Reset and ResetRequest. Joining makes
// large answers over TCP cheaper.
//
// # Promises
//
//  1. A connection delivers all bytes in order. A writer blocks while its buffer is full.
//  2. A closed, half-closed or reset connection fails with the errors of package net. Bytes that were written before a
//     reset can still be read.
//
// # Concurrency
//
// All methods may be called on any goroutine. The package starts no goroutine. Reads and writes that wait are durably
// blocked for testing/synctest.
package pipe
