// Package proxy forwards TCP connections and breaks them on demand.
//
// # Place in the pipeline
//
// Between apiclient and a real API server, below TLS: it sees bytes and knows nothing of HTTP, so what it does to a
// connection is what a network does.
//
// # Guarantees
//
//  1. Undisturbed, every byte arrives, in order, in both directions, and so does the end of each (TestForwards).
//  2. After Cut each end of every connection that was open is reset; the next connection works (TestCut).
//  3. While stalled nothing arrives, of old connections and new ones; after Resume all of it does (TestStall).
//  4. After HalfClose the client reads the end, and what it writes still arrives (TestHalfClose).
//  5. While refusing, a connection is reset as soon as it is made (TestRefuse).
//  6. Run returns, with every connection closed, when its context ends, stalled or not (TestRunEnds).
//
// # Concurrency
//
// Every method may be called from any goroutine and none but Run blocks.
//
// # Differences from client-go
//
// client-go has no such thing.
package proxy
