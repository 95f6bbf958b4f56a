// Package expectations keeps a reconciler from acting on a cache that does not contain the reconciler's own writes yet.
// A reconcile records the creations and deletes that it is about to request; the informer's handlers report the events;
// the next reconcile of the key acts only when all of them have arrived. SlowStart creates many objects without
// flooding a server that rejects the first ones.
//
// # Example
//
//	if !e.Satisfied(key) {
//		return // the cache is behind; an event will bring the key again
//	}
//	e.Expect(key, 2)  // before the requests
//	e.Created(key, 1) // for each event of a handler, and for each request that failed
//
// See Example and ExampleSlowStart.
//
// # Promises
//
//  1. A key is satisfied if it has no expectations, if all expected creations and deletes were observed, or if the
//     expectations have expired.
//  2. A delete that is observed twice counts once; a delete that was not expected does not count.
//  3. Expect replaces the earlier expectations of a key. A satisfied key takes no memory.
//  4. SlowStart runs batches of 1, 2, 4, ... calls and starts no batch after a failure. When it returns or panics, all
//     its calls have ended.
//
// # Concurrency
//
// Expectations are safe for concurrent use; its methods do not block. SlowStart blocks until all calls have returned.
//
// # Differences from client-go
//
// client-go has nothing like it. Expectations combines ControllerExpectations and UIDTrackingControllerExpectations of
// kube-controller-manager in one type, for any comparable key. It always distinguishes deletes by UID. To expect
// several kinds of objects for one key, use a key for each kind. Satisfied expectations are removed; in
// kube-controller-manager they stay.
//
// Do not use coalescing handlers: they do not deliver an addition and a delete that cancel each other, so the
// expectations would not be satisfied before they expire.
package expectations
