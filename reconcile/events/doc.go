// Package events writes Events. An Event tells a user who calls kubectl describe what a controller did to an object,
// and why. A reconciler calls Event and continues at once. A running Recorder merges similar Events and writes them to
// events.k8s.io/v1, or to core/v1 if an option says so. It declares only the fields that it writes, so that an agent
// does not link the core API for them.
//
// # Example
//
//	events, err := events.New(client, events.Options{Controller: "example.org/mill-controller"})
//	go events.Run(ctx) // writes Events until ctx ends, and then those that wait
//	events.Warning(pods, pod, "FailedMount", "volume %s does not exist", name)
//
// See Example.
//
// # Promises
//
//  1. Event never blocks and never fails. If Events arrive faster than they can be written, the newest ones are dropped
//     and counted.
//  2. An Event that repeats becomes a series of one Event. The series is written at its second occurrence, then at most
//     once a minute, and at its end.
//  3. More than ten notes with one reason about one object within ten minutes become one Event that says so. Events
//     about one object beyond 25, and beyond one more in five minutes, are not written.
//  4. Memory is bounded: a Recorder remembers at most 4,096 series and as many objects.
//  5. When its context ends, Run writes the waiting Events within FlushTimeout, or within the grace period of its
//     Manager. If that is too short, the log says how many are lost.
//  6. A request that may succeed later is repeated for two minutes. An Event that the server rejects for good is
//     dropped and counted. An Event that has expired on the server is written again. If an answer is lost, the Event is
//     not written twice.
//  7. Notes and names that are too long for the server are shortened. An Event without an object is not written.
//  8. The log has at most one line a minute about failures. The line counts those that were not logged.
//
// # Concurrency
//
// Event may be called on any goroutine, at any time. Events from before Run wait in the queue. Run has no goroutine of
// its own, and blocks until its context has ended and the queue is written.
//
// # Differences from client-go
//
// One recorder writes to both APIs, with one rule for series. client-go patches a core/v1 Event each time, and writes a
// series of events.k8s.io at its second occurrence and then after half an hour. Events that wait when a program ends
// are written, not dropped. The queue has counters. A rejection ends the retries.
package events
