// Package recorder writes Events: what a controller wants a person to read who looks at an object with kubectl describe.
//
// # Place in the pipeline
//
// Beside a reconciler, which calls Event and goes on. A Recorder that runs merges what it is told and writes it with the
// client, to events.k8s.io/v1 or, where that is asked for, to core/v1. The structs are its own, of the fields that events
// have in both, so that an agent does not link the core API for them.
//
// # Guarantees
//
//  1. Event never blocks and never fails: where more comes than can be written, the newest are dropped and counted
//     (TestQueueIsBounded).
//  2. What is told again becomes a series of one Event, not another one: it is written at its second time, then at most
//     once a minute, and at its end (TestSeries).
//  3. More than ten notes with one reason about one object within ten minutes become one Event that says so
//     (TestAggregation), and an object that is told of more often than 25 times, and once in five minutes beyond, is not
//     told of (TestSpam).
//  4. Nothing grows without bound: at most 4,096 series and as many objects are remembered (TestMemoryIsBounded).
//  5. When its context ends Run writes what was told before, within FlushTimeout, or within the grace period of its
//     Manager (TestFlush, TestFlushEndsBy). It ends where the server does not answer in that time, and says how much is
//     lost (TestFlushIsBounded).
//  6. A server that cannot be reached, or is busy, is tried again for two minutes; what it refuses for good is dropped and
//     counted; an Event that expired on the server is written anew, and one whose answer was lost is not written twice
//     (TestRetries, TestRefusals, TestExpiredSeries, TestLostAnswer).
//  7. What a server would refuse is made to fit: long notes and names are cut (TestLongTexts). An Event of
//     no object is not written, and does not panic (TestNothingToTellOf).
//  8. A server that refuses everything is one line a minute in the log, which counts the others (TestComplaintsAreRare).
//
// # Concurrency
//
// Event may be called from any goroutine at any time, before Run, too: what comes then waits in the queue. Run has one
// goroutine, the caller's, and blocks until its context has ended and the queue was flushed.
//
// # Differences from client-go
//
// There is one recorder for both APIs, with one rule for series: client-go patches a core/v1 Event each time, and writes a
// series of events.k8s.io at its second time and then after half an hour. What is queued when a program ends is written,
// not dropped. The queue has counters. A refusal ends the tries.
//
// # Example
//
// See Example.
package recorder
