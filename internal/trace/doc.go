// Package trace prints what each stage of the pipeline does, one line at a time: the demonstration, the walkthrough and
// the transcripts of the tests are made of these lines.
//
// # Place in the pipeline
//
// Beside it. It wraps a ListerWatcher and a handler, and listens to an informer's batches; it changes nothing.
//
// # Guarantees
//
//  1. A traced ListerWatcher yields what the one beneath yields, in the same order (TestTracedListerWatcherIsTransparent).
//  2. A nil Printer is silent (TestNilPrinterIsSilent).
//
// # Concurrency
//
// A Printer may be used from anywhere; lines are written whole. It holds its lock while it writes.
//
// # Differences from client-go
//
// There is nothing like it there.
package trace
