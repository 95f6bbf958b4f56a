// Package informer keeps a cache equal to a collection on a server and notifies handlers of every change. It connects
// the stages below a controller:
//
//	ListerWatcher → Reflector → DeltaFIFO → handleDeltas → Indexer
//	                                             └───────→ processListeners → handlers
//
// Read informer.go for what users call, feed.go and pipeline.go for how the stages are connected, handledeltas.go for a
// batch, listener.go and backlog.go for the way to a handler, and holding.go for objects in another form.
//
// # Example
//
//	pods := informer.New(client, informer.Options[*corev1.Pod]{Selector: api.Selector{Labels: "app=web"}})
//	handler, err := pods.AddEventHandler(informer.HandlerFuncs[*corev1.Pod]{AddFunc: added}, informer.HandlerOptions{})
//	go pods.Run(ctx)   // blocks until ctx ends
//	<-handler.Synced() // the handler has processed the initial list
//	pod, exists := pods.Cache().Get(key)
//
// See Example, ExampleAddIndex and ExampleFiltered. Package informer/factory shares informers.
//
// # Coalescing
//
// A handler with HandlerOptions.Coalesce gets at most two notifications for each object that changed while the handler
// was behind: a Delete of the state that it got last, and an Add or Update with the newest state. Handlers that count
// changes, such as expectations, must not use it.
//
//	Add      + Update = Add of the new          Delete + Add          = both
//	Add      + Delete = nothing                 Delete + Add + Delete = the first Delete
//	Update   + Update = Update, first to last   Update + Delete       = Delete
//
// # Promises
//
//  1. Each handler gets a legal history of each object: one Add, then Updates, then at most one Delete. An object with
//     a new UID under the same key is a Delete and an Add.
//  2. A handler that joins while changes arrive gets each change exactly once: in its replay, or as a notification.
//  3. When a handler gets a change, the cache already holds that state or a newer one.
//  4. A reader sees a relist entirely or not at all. Failed requests, broken streams and malformed objects remove
//     nothing from the cache.
//  5. A slow, stuck or panicking handler delays neither the cache nor another handler.
//  6. The backlog of a coalescing handler is bounded by the number of objects.
//  7. ResourceVersion is exactly the version of the cache. WaitFor returns when the cache has reached a version.
//  8. Run returns when all its goroutines have ended, and no handler is called afterwards. A removed handler holds no
//     object.
//
// # Concurrency
//
// The reflector's goroutine receives changes. Run's goroutine applies them to the cache, in batches. One goroutine for
// each handler delivers notifications, one at a time and in order. A single change after a pause takes a shorter way:
// the reflector's goroutine applies it, if the source calls api.Options.OnWait. Index functions and traces run there
// too. With Options.Mutations or a trace with MayBlock, each change takes the longer way. The goroutine that applies a
// small batch also calls the handlers with HandlerOptions.NonBlocking. Other handlers are called without a lock. They
// may block, add handlers, wait for a version, and remove handlers, also themselves. A handler that ends its goroutine
// is removed.
//
// One lock orders batches, joins and resyncs. Index functions and the conditions of WaitUntil are the only user code
// that runs under it. They must not call the informer. The functions in Options may call it, but it is blocked until
// they return, so they must not wait for it.
//
// Reading the cache never blocks. Status, AddEventHandler and Remove wait at most for a batch that is being applied.
// WaitFor blocks. Every method may be called on any goroutine, before, during and after Run.
//
// # Differences from client-go
//
// Handlers are typed, and a deletion always has an object. A handler can be removed; an informer can be stopped. Each
// handler has its own resync period; in client-go a late one never resyncs more often than those before it. A panic of
// a handler is counted and logged, and the handler still becomes synced. A relist calls handlers only for changes; in
// client-go it also calls handlers that have a resync period, for every object. A changed UID is a Delete and an Add;
// in client-go it is an Update. ResourceVersion is the version of the cache, not the version that was received last.
// Notifications are ordered per object and by the first change of each object in a batch; there is no order of all
// changes across objects. Cached objects share equal parts, so a change to one, which is always wrong, shows in others.
package informer
