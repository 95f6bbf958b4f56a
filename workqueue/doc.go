// Package workqueue is a queue of keys for workers. It hands each key to one worker at a time, and no more often than
// necessary. Handlers of an informer add the keys of changed objects; workers of a controller take them. The package
// knows nothing of Kubernetes and imports no other package of leat.
//
// # Example
//
//	queue := workqueue.New[string](workqueue.Options{})
//	queue.Add("default/web")
//	work, err := queue.Get(ctx) // blocks until a key is ready; ErrShutDown ends the worker
//	...
//	queue.Forget(work.Key) // after success; queue.AddRateLimited(work.Key) after a failure
//	queue.Done(work.Key)
//
// See Example for a worker, ExampleQueue_AddWith for priorities and causes, ExampleQueue_ShutDownWithDrain for an
// orderly end, and ExampleMaxOf for limiters.
//
// # Promises
//
//  1. Two workers never have the same key at once, and no add is lost: a hand-out follows it.
//  2. Adds of one key coalesce. An add of a ready key adds its cause and its priority; an add of a key that is being
//     processed makes the key ready at its Done, once.
//  3. A delay ends exactly on time. Of several delays of one key, the earliest counts; Add ends the delay at once.
//  4. Keys with a higher priority go first, and no key starves. If n keys were ready before a key, it is among the next
//     8(n+1) keys. The price: sometimes the queue hands out a key of a lower priority first.
//  5. After ShutDown, the queue ignores adds, drops delayed keys and hands out the ready keys. A drain ends when no key
//     is ready or being processed.
//  6. A key carries the causes of the adds that made it ready: the first Options.MaxCauses, and the number of the
//     others.
//  7. The queue keeps no reference to a key that has left, and releases the memory of a burst within half a minute.
//  8. Add, Get and Done do not allocate in a queue in steady use. They read the clock only for delays and metrics.
//
// # Concurrency
//
// All methods may be called on any goroutine. Only Get and ShutDownWithDrain block, at most until their context ends. A
// queue owns no goroutine; a timer makes delayed keys ready and needs a goroutine only for that moment. The queue has
// one lock. It calls a RateLimiter and the functions of Metrics without this lock, so they may use the queue.
//
// Keys that one goroutine adds with one priority are handed out in the order of the adds; keys that are due at the same
// time, in the order in which they were delayed. Which of several waiting Gets receives a key is not defined.
//
// # Differences from client-go
//
// One type replaces Interface, DelayingInterface and RateLimitingInterface, and the priority queue of
// controller-runtime.
//
//   - A key has one pending hand-out. In client-go it can be ready and delayed at once. A handler that adds a key now
//     and again after a delay should let the worker request the delay.
//   - After ShutDown, Get still returns a key that was added again while a worker had it. Then it returns ErrShutDown.
//     A drain takes a context and also waits for queued keys.
//   - Done panics if the key is not being processed.
//   - Priorities age. The priority queue of controller-runtime starves less urgent keys, and drops queued keys at
//     shutdown.
//   - Stats returns the gauges when it is called. No goroutine refreshes them.
//   - Priorities replace a pluggable order. Instead of ParallelizeUntil, use errgroup.Group.SetLimit of
//     golang.org/x/sync.
package workqueue
