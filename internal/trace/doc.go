// Package trace prints what each stage of the pipeline does, one line at a time. The demo, the walkthrough and the
// transcripts of tests consist of these lines. It wraps a ListerWatcher and a handler, and observes an informer's
// batches; it changes nothing.
//
// # Promises
//
//  1. A traced ListerWatcher returns the same events, in the same order, as the wrapped one.
//  2. A nil Printer is silent.
//
// # Concurrency
//
// A Printer may be used on any goroutine. It writes whole lines, and holds its lock while it writes.
package trace
