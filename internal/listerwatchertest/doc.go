// Package listerwatchertest is the conformance suite for every api.ListerWatcher. It also has tools for such tests: a
// network in memory, and a server that speaks protobuf. Only tests import it. To test a ListerWatcher, call Run with a
// function that makes one for a test server.
//
// # Promises
//
//  1. Each case has its own server and its own synctest bubble. So times are exact, and a goroutine that is left over
//     fails the case.
//
// # Concurrency
//
// A case runs on the goroutine of its test. No goroutine outlives the case.
package listerwatchertest
