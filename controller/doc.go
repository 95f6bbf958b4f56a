// Package controller runs reconcilers: functions that bring the world into the state that one object requests. Sources
// turn the changes of informers and the calls of functions into keys; a queue merges equal keys; workers call the
// reconciler with one key at a time:
//
//	informer → Source: predicates, then keys → workqueue → worker → Reconcile(ctx, key)
//
// Read reconciler.go and objects.go for the user's code, controller.go for the life of a controller, informersource.go
// and owns.go for the way from changes to keys, and worker.go for the way of a key.
//
// # Example
//
//	c := controller.New("web", controller.Objects(webs.Cache(), reconciler), controller.Options{})
//	c.Watch(controller.For(webs))        // the key of each object
//	c.Watch(controller.Owns(webs, pods)) // the key of the owner of each pod
//	err := c.Run(ctx)                    // blocks until ctx ends
//
// See Example, ExampleOwns, ExampleMap, ExampleMap_clusters, ExampleSpec, ExampleReconcileID, ExampleController_Why and
// ExampleTerminalError.
//
// # Results
//
// The result of a reconcile decides what happens to its key. Events add the key again in any case, and it keeps its
// priority unless Result.Priority is set.
//
//	error                       RequeueAfter   outcome         the key
//	nil                         0 or less      success         its failures are forgotten
//	nil                         more           requeue_after   its failures are forgotten; again after that time
//	any                         ignored        error           again after its backoff
//	any, MaxRetries used up     ignored        dropped         its failures are forgotten
//	TerminalError               ignored        terminal        its failures are remembered
//	of a context, at the end    ignored        cancelled       dropped with the queue
//
// # Promises
//
//  1. No reconcile begins before every source has processed its initial list. A source that is not synced in time ends
//     Run with an error that names the resource and the reason.
//  2. A key is never reconciled twice at once. A key that is added during its reconcile is reconciled again.
//  3. A failed key is tried again, later each time, until it succeeds. A panic costs one attempt.
//  4. An owner is reconciled after a change of an owned object, even if the watch missed the change. Objects of a
//     deleted owner do not wake a new owner of the same name.
//  5. Keys of events go before keys of initial lists and resyncs; no key starves.
//  6. A key that a Gate holds back occupies no worker, counts no failure, and loses neither causes nor priority.
//  7. After Remove, a source's functions are not called again, except in a call that is in flight; Done waits for that
//     call.
//  8. Run returns when no reconcile is running and all its goroutines have ended. A source that fails ends Run.
//
// # Concurrency
//
// Run has one goroutine for each source and each worker. An informer's goroutine calls predicates and map functions,
// for one change at a time; a slow function delays only its own source.
// Workers call the reconciler, for different keys at once. The controller holds no lock while it calls user code.
// Watch, Remove, Add, Stats, Options, NotSynced and Why may be called on any goroutine, at any time, and do not block.
//
// # Differences from client-go
//
// client-go has no controllers; controller-runtime has. Here, keys may have any comparable type. Predicates are
// functions of one source. A source can be removed. Owns follows only the reference that is marked as the controller,
// because an object may have several owners but only one of them manages it; Map finds the others. Owns takes kind and
// scope from the owners' informer, and compares UIDs. The error after a sync timeout contains the last error of the
// list. Panics are also recovered in predicates and map functions. A failed informer ends the controller. Retries may
// be limited, and Result has no Requeue. Low priorities do not starve. A reconcile can read its causes, and Why returns
// those of earlier ones. A SourceFunc replaces the source of a channel. A name is unique in a manager, not in the
// process. There is no builder, because there is no scheme; see Spec. A Gate replaces the error of a reconcile whose
// cache is behind (KEP-5647).
package controller
