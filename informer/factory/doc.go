// Package factory shares informers between the parts of a program. A part asks a [Factory] for the informer of a
// collection and gets a [Share], so it need not know who else reads the collection. A program with one informer for
// each collection needs no factory.
//
// # Example
//
//	f := factory.New(factory.Options{})
//	pods, err := factory.Shared(f, client, informer.Options[*corev1.Pod]{})
//	go f.Run(ctx) // runs the present and future informers; blocks until ctx ends
//	err = pods.WaitFor(ctx, version)
//	pods.Release() // the last release of a share stops the informer
//
// Most tests are beside those of package informer, because they share its source in memory; see Example_factory there.
//
// # Promises
//
//  1. Users of one collection with the same options share one informer. A difference in another option is an error that
//     names it.
//  2. An informer stops when its last share is released, and a released share holds no handler.
//  3. A failed informer affects no other. The next user of its collection gets a new one.
//  4. A factory is synced when its informers are. It does not wait for an informer that has failed or was released.
//
// # Concurrency
//
// All methods may be called on any goroutine. Of those of a Factory, only Run blocks, until its context ends and the
// informers have ended. A handler may release its own share.
//
// # Differences from client-go
//
// SharedInformerFactory of client-go shares by Go type only, and cannot stop one informer. Its WaitForCacheSync
// considers the informers at the time of the call; Synced also considers those that join before it is closed.
package factory
