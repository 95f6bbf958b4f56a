// Package faults names what can go wrong with an API server: requests that fail, watches that lose events, lists that
// never end, storage that was restored from a backup. Server.Inject of package testserver makes it happen.
//
// # Example
//
//	injection := server.Inject(faults.Fault{
//		Match:  faults.Match{Resource: "pods", Verbs: []string{"watch"}},
//		Effect: faults.EndWatch{Abrupt: true},
//	})
//	err := injection.Wait(ctx, 1) // until a client met it
//	injection.Remove()
//
// fault.go says what a fault affects, and effects.go what happens. See testserver.ExampleServer_Inject.
//
// # Promises
//
//  1. Every effect does what its comment says, and nothing else.
//  2. A fault affects only what Match selects, after Skip matches, and Times times at most.
//
// # Concurrency
//
// The types are plain values. The functions in them are called on the goroutines of requests.
package faults
