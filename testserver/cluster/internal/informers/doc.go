// Package informers shows the objects of a server as the informers, listers and clients that the libraries of
// Kubernetes ask for. It has no watches and no copies: a lister reads the store of the server when it is called.
//
//	factory := informers.New()
//	factory.Connect(server's store)
//	namespace, err := factory.Core().V1().Namespaces().Lister().Get("default")
//
// # Promises
//
//  1. A lister shows every write that was answered before.
//
// # Concurrency
//
// All methods may be called from any goroutine that does not hold the lock of the store. Objects are shared: do not
// modify them.
package informers
