// Package extension is what a typed API server adds to testserver: resources with schemas, identities, authorization,
// admission and documents. The module testserver/cluster fills an Extension; testserver calls it.
//
//	server := testserver.NewExtended(testserver.Options{}, extension.Extension{Resources: builtin.Resources()})
//
// # Promises
//
//  1. A server with an empty Extension behaves like testserver.New.
//
// # Concurrency
//
// The server calls the functions on the goroutines of requests. Only Definition and Settle run under its lock.
package extension
