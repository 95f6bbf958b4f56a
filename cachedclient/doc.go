// Package cachedclient is the client of a reconciler: it reads one resource from an informer's cache and writes to the
// API server. With a Gate or an overlay, a reconcile never reads a state from before its own writes:
//
//	informer → cache ──Get, List──▶ reconciler ──Create, Update, Patch, Delete──▶ apiclient → API server
//	             │                      ▲  │
//	             └───────▶ Gate ────────┘  └──▶ overlay of the cache
//
// Read partial.go and list.go for reads, write.go and typed.go for writes, and change.go for changes of an object that
// is read first. cachesource.go gives a client its cache. gate.go, unseen.go and cachetarget.go delay a reconcile until
// the cache shows the writes of the previous one; overlay.go shows a client's writes at once.
//
// # Example
//
//	c := cachedclient.NewTyped(apiclient.NewTyped[*Web](api, webs, ""), informer, cachedclient.Options{})
//	web, err := c.Get(ctx, key) // a copy from the cache
//	web, result, err := c.Change(ctx, key, func(w *Web) error {
//		w.Spec.Replicas = 3
//		return nil
//	})
//
// See Example, ExampleGate, ExampleBy and ExampleTyped_CreateOrUpdate.
//
// # Reading one's own writes
//
// The cache shows a write a moment later. There are two remedies, which can be combined:
//
//   - A Gate in front of a reconciler delays the next reconcile of a key until the caches show what the previous ones
//     wrote. Within a reconcile, reads return what the cache has. This suits most controllers.
//   - Options.Overlay makes a client's reads show its own writes at once. It does not know the writes of other clients.
//     Objects in the overlay have not passed the informer's Transform.
//
// If the answer to a write is lost, neither the Gate nor the overlay records the write, because its version is unknown.
// If versions have no order, a Gate waits until the cache shows exactly the version that was written, and an overlay
// ignores the write.
//
// # Promises
//
//  1. Get and List return copies. Peek, and List with ListOptions.Shared, return the objects of the cache.
//  2. A read starts an informer only if Options.Informers allows it; what no informer caches is a *NotCachedError.
//  3. A read waits for the first list of the cache until ctx ends. The error then contains the error of the list.
//  4. A list and all its pages show one moment, in the order of namespaces and names.
//  5. Behind a Gate, a reconcile does not read a state from before the writes of earlier reconciles of the same key,
//     unless the Gate's timeout is over.
//  6. A Gate does not wait for a write that the cache will never show, and forgets the writes that caches have shown.
//  7. An overlay shows the newer one of the last write and the cached state. While it remembers an object, no reader
//     sees an older state after a newer one.
//  8. CreateOrUpdate, CreateOrPatch, Change and ChangeStatus send nothing if nothing changes. They read from the server
//     after a conflict, and never delete a field that a Transform dropped.
//
// # Concurrency
//
// All types are safe for concurrent use. A read from a filled cache takes no lock if the overlay is empty. Writes block
// until the server answers. A Gate has one mutex: it reads caches under it and calls no function of the user. This
// package starts no goroutine. A Gate traces an informer when it waits for that cache for the first time, and
// uses a timer for the timeout. OnWait runs on the informer's, the timer's or the caller's goroutine.
//
// # Differences from client-go
//
// client-go has listers and typed clients; controller-runtime has one client for all types. Here, a client has one type
// and is made from an informer, so there is no scheme, and a partial type has no method that writes it whole. Lists
// have an order, a version and pages. A List is its own continue token: it keeps the rest of its objects in memory.
// Field selections use indexes, which are typed values. CreateOrUpdate resolves conflicts.
package cachedclient
