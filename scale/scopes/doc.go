// Package scopes is an informer that reads from many scopes: namespaces, or selectors of one resource. Each scope is
// one list and watch stream with its own version, status and errors. Scopes can be added and removed while the informer
// runs. All objects are in one cache, for one set of handlers:
//
//	ListerWatcher → Reflector → Stream ─┐
//	ListerWatcher → Reflector → Stream ─┼→ Merger → DeltaFIFO → informer.Informer → handlers
//	ListerWatcher → Reflector → Stream ─┘
//
// Read scopes.go for the set, member.go for one scope, feed.go for Run and the status, follow.go for scopes that follow
// objects, and check.go for consistency checks. internal/merge decides what a change is. The queue, the cache and the
// handlers work as with one stream.
//
// # Example
//
//	set := scopes.New(pods, scopes.Options[*corev1.Pod]{})
//	err := set.Add(scopes.Scope[*corev1.Pod]{Source: apiclient.NewPartial[*corev1.Pod](client, pods, "team-a")})
//	go set.Run(ctx)
//	<-set.Synced()                            // every scope has its first list
//	done := set.Remove("team-a", scopes.Notify) // handlers get a deletion of each object
//
// See Example and ExampleFollow. Use set.Informer for controllers and clients, and add the set to a manager.
//
// # Promises
//
//  1. A list deletes objects of its own scope only. A scope that fails delays and changes no other.
//  2. If an object moves to another scope, or returns to one that had lost it, handlers get an update. That scope must
//     have its first list, and receive the object within a second.
//  3. If scopes have common objects, the cache has the newest state of each. It deletes an object when no scope has it.
//  4. Each handler gets a legal history of each object, even while scopes come and go. Only a Silent removal deletes
//     objects without a notification.
//  5. A snapshot has the version of each scope. WaitForIn, and reads, gates and overlays of package cachedclient, wait
//     for the scopes of one namespace only.
//  6. Status says which scopes are late and why. Synced waits for the scopes that were added before Run and for those
//     of the first followed objects. The removal of a late scope ends the wait for it.
//  7. At most Options.MaxLists lists are in progress at once, and as many requests of checks, which delay no scope.
//  8. A scope costs less than 30 KB besides its objects: heap and stacks, those of its connection included.
//
// # Concurrency
//
// Each scope has a goroutine, which calls its source and the callbacks of Options. Callbacks may therefore run on
// several goroutines at once. With Options.Check, each scope has a second goroutine, for its check. Every method may be
// called on any goroutine, before, during and after Run. Run, WaitForIn, and WaitFor and WaitUntil of the informer
// block.
//
// # Limits
//
// All scopes must be of one server, because a new scope begins with a list that is not older than what the set has. Use
// an informer for each cluster. Options.Hold must be nil. Handlers get the objects of a scope when its first list is
// complete, which may be before Synced.
//
// In an informer without scopes, the initial additions come before the first changes. With scopes they need not,
// because a batch contains all changes of one object before those of the next. An update of an object may come before
// the initial additions of others in the same namespace, if the object has changed again before the batch, or if
// another scope had it. A handler that waits for the whole state waits for Synced of its registration.
//
// # Differences from client-go
//
// client-go has an informer for each namespace, each with its own indexes and handlers. controller-runtime's
// multi-namespace cache has a fixed set of namespaces, and reads ask each of them.
package scopes
