// Package queue has leat's workqueue behind the interfaces of client-go's. Controllers that are written with client-go
// or controller-runtime use it without changes.
//
// # Example
//
//	q := queue.New("pods", workqueue.DefaultTypedControllerRateLimiter[string]())
//
// In controller-runtime:
//
//	controller.Options{NewQueue: queue.New[reconcile.Request]}
//
// See Example.
//
// # Promises
//
//  1. A key that is added several times before its Get is handed out once. A key that is added while it is processed is
//     handed out again after its Done, once.
//  2. After ShutDown, Get hands out the ready keys and then reports the shutdown.
//  3. ShutDownWithDrain returns when every ready key was handed out and is Done.
//  4. An option that leat's queue does not have is refused with an error that names it.
//
// # Concurrency
//
// All methods may be called on any goroutine. The queue starts no goroutine. Get and ShutDownWithDrain block.
//
// # Differences from client-go
//
// A key is ready or delayed, but not both: an Add of a delayed key ends the delay, and an AddAfter of a ready key has
// no effect. In client-go the key is handed out twice, so a program that relies on the second time must call AddAfter
// from its worker. ShutDown drops delayed keys at once. ShutDownWithDrain also waits for keys that are ready
// (kubernetes#141079). Done of a key that is not being processed panics; client-go ignores it. The queue publishes no
// metrics of client-go: use Wrap, with leat's package metrics.
package queue
