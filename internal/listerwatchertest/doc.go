// Package listerwatchertest is the one conformance suite for every api.ListerWatcher, and what such tests need beside it:
// a network in memory, and a server that speaks protobuf.
//
// # Place in the pipeline
//
// Beside it: only tests import it. Whoever writes a ListerWatcher calls Run with a function that makes one for a test
// server.
//
// # Guarantees
//
//  1. Each case has a server and a synctest bubble of its own, so that its times are exact and a goroutine that is left
//     fails it (TestSuite of the packages that call Run).
//
// # Concurrency
//
// A case runs on the goroutine of its test. Nothing here outlives it.
package listerwatchertest
