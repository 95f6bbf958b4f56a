// Package clientgo puts leat under programs that are written with client-go: their informers keep leat's cache and get
// leat's events, and handlers, listers and controllers stay as they are.
//
// New is an informer for leat's client, with leat's decoders. Preload makes a SharedInformerFactory use one, so that
// generated informers and listers work unchanged. NewSharedIndexInformer replaces client-go's function of this name for
// any list/watcher, such as those of fake clientsets. Package restconfig makes the client, package queue has the
// workqueue.
//
// # Differences from client-go
//
//   - Do not change cached objects, as always. An object that was changed stays changed over a relist, because leat
//     keeps objects whose UID and version are the same.
//   - An object with a new UID under the same name is a tombstone and an addition; in client-go it is an update.
//   - A relist notifies of changes only; in client-go also handlers with a resync period of every object.
//   - New drops managedFields unless Options.KeepManagedFields is set. NewSharedIndexInformer keeps them.
//   - A watch error handler gets a Reflector without state, and every failed list, watch and probe.
//   - An object that cannot be decoded or transformed keeps its last good state and does not fail the list.
//   - An index function that fails leaves the object out of its index, and the first such failure is logged; in
//     client-go it ends the process.
//   - After a panic of a handler, with utilruntime.ReallyCrash set to false, the next call comes at once, and the
//     handler still becomes synced.
//   - client-go's metrics of informers are not published. Objects are in the order of leat's cache.
//
// # Example
//
//	client, err := restconfig.NewClient(config)
//	factory := informers.NewSharedInformerFactory(clientset, time.Hour)
//	pods := apiclient.NewTyped[*corev1.Pod](client, podsResource, "")
//	_, err = clientgo.Preload(factory, pods, clientgo.Options[*corev1.Pod]{}) // before factory.Core().V1().Pods()
//	lister := factory.Core().V1().Pods().Lister()                             // reads leat's cache
//	factory.Start(ctx.Done())
//
// See Example and ExampleNewSharedIndexInformer.
//
// # Promises
//
//  1. Handlers get the calls that client-go's informer makes, in the order of each object, with isInInitialList and
//     tombstones.
//  2. A handler can join and leave at any time. After cache.ShutDownEventHandler no call of it is in flight.
//  3. Stores and indexers answer as client-go's do, and indexers can be added at any time. A read does not wait.
//  4. A transform may change everything, even the name. With Options.Hold it may not change the identity.
//  5. LastSyncResourceVersion is exactly the version of the cache.
//  6. Tests can write to the store. A write calls no handler.
//  7. Options that leat cannot honour are refused at once, with a sentence that names them.
//
// # Concurrency
//
// As package informer: one goroutine for each handler, and readers never wait. A list/watcher of client-go is called on
// a goroutine of its own, which may outlive Run if the list/watcher ignores its context.
package clientgo
