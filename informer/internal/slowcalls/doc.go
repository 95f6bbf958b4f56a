// Package slowcalls finds calls of handlers that take long, without reading the clock before each call. A [Watchdog]
// reports calls that are still in flight, and a [Sampler] calls that have returned but delay a long backlog.
//
// # Promises
//
//  1. A call that takes longer than the watchdog's time is reported once, and its return too. A quick call never is.
//  2. A sampler finds a slow call at the end of its sample, and reads the clock once for up to 64 quick calls.
//
// # Concurrency
//
// A Sampler, and all methods of a Call except StuckSince, belong to the goroutine that calls the handler. StuckSince
// may be called on any goroutine, and Stop when all listeners have ended. Report is called on the goroutine of the
// watchdog's timer, or on the one that calls the handler.
package slowcalls
