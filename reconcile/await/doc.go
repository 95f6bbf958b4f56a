// Package await blocks until objects meet a condition: until they exist, are deleted, are Ready, or until any other
// function of the object returns true. Each wait runs its own informer and checks every batch of changes. So a wait
// survives everything that an informer survives: broken watches, expired resource versions and restarted servers.
//
// Read await.go for the wait, object.go and selection.go for one object and for many, and condition.go and status.go
// for the conditions.
//
// # Example
//
//	pod, err := await.Object(ctx, pods, key, await.Condition[*corev1.Pod]{
//		Name: "success",
//		Met: func(pod *corev1.Pod, exists bool) (bool, error) {
//			return exists && pod.Status.Phase == corev1.PodSucceeded, nil
//		},
//	}, await.Options{})
//
// See Example, ExampleAll and ExampleGone.
//
// # Promises
//
//  1. Object sees every state of its object, however fast the states follow each other.
//  2. An object that is created again is another object: a wait for the delete of the first one ends.
//  3. All returns when all selected objects meet the condition at the same moment.
//  4. A wait misses no change between the first list and the watch, or while a watch is broken.
//  5. A wait ends as soon as its context ends, with an error that names the condition and the progress.
//  6. An error that will not go away by itself ends the wait.
//
// # Concurrency
//
// Object, All, Gone and Until block. They call conditions and OnWaiting on the caller's goroutine, and the wait stops
// meanwhile. OnError runs on a goroutine that has ended when they return. A Condition has no state and may be
// shared.
//
// # Differences from client-go
//
// A condition gets objects, not events; a flag tells whether the object exists. A wait continues after a broken watch,
// and ends with the reason if the list is forbidden. The error after a timeout names the objects that did not meet the
// condition. Deletes are recognized by UID. There is no precondition: the first state that a condition gets is the
// first list.
package await
