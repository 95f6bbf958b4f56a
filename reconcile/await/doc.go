// Package await blocks until objects meet a condition, which is a function: until they exist, are deleted, are Ready,
// or whatever else. Each wait runs its own informer and checks every batch of changes. So a wait survives everything
// that an informer survives: broken watches, expired resource versions and restarted servers.
//
// Read await.go for the wait, and object.go for the wait for one object.
//
// # Example
//
//	pod, err := await.Object(ctx, pods, key, "success", func(pod *corev1.Pod, exists bool) (bool, error) {
//		return exists && pod.Status.Phase == corev1.PodSucceeded, nil
//	}, await.Options{})
//
// See [Example] and [ExampleUntil].
//
// # Promises
//
//  1. Object sees every state of its object, however fast the states follow each other.
//  2. An object that is created again is another object: Object sees that the first one is gone.
//  3. A wait misses no change between the first list and the watch, or while a watch is broken.
//  4. A wait ends as soon as its context ends, with an error that names the condition and the progress.
//  5. An error that will not go away by itself ends the wait.
//
// # Concurrency
//
// [Object] and [Until] block. They call conditions on the caller's goroutine, and the wait stops meanwhile. OnError
// runs on a goroutine that has ended when they return.
//
// # Differences from client-go
//
// A condition gets objects, not events; a flag tells whether the object exists. A wait continues after a broken watch,
// and ends with the reason if the list is forbidden. There is no precondition: the first state that a condition gets is
// the first list.
package await
