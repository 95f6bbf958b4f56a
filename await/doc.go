// Package await blocks until objects are as somebody wants them: made, gone, Ready, or anything else that a function can
// tell of them.
//
// # Place in the pipeline
//
// Beside the handlers of an informer: each wait runs an informer of its own, of one object or of a selection, looks at
// every batch of changes once it is in the cache, and ends it. So a wait survives what an informer survives: watches that
// break off, versions that expire, servers that restart. Read await.go for the wait, object.go and selection.go for what
// it keeps of one object and of many, condition.go, status.go and path.go for what can be waited for.
//
// # Guarantees
//
//  1. No state of one object is left out, however fast they follow each other (TestEveryStateIsSeen).
//  2. An object that was made anew is another object: the wait for the end of the first is over
//     (TestDeletionIsOfOneObject, TestGoneIsOfThoseThatWereThere).
//  3. All objects of a selection meet their condition at one moment (TestAllAtOneMoment).
//  4. Nothing is missed between the first look and the watch, or while a watch is broken (TestAWaitSurvives).
//  5. A wait ends with its context at once, and says what it was waiting for and how far that had come (TestUnmet,
//     TestNobodyAnswers).
//  6. What will not go away by itself ends the wait with its cause (TestPointlessWaits).
//  7. A path that cannot be understood is an error that says where, and never a wait for nothing (TestParsePathErrors,
//     FuzzParsePath).
//
// # Concurrency
//
// Object, All, Gone and Until block. They call conditions and OnWaiting on the goroutine that called them, and nothing goes
// on until those return; OnError is called on a goroutine that is gone when they return. A Condition and a Path keep
// nothing and may be shared.
//
// # Differences from client-go
//
// Conditions are asked about objects, not about events, and an object that is not there is told apart by a flag. Waiting
// goes on after a broken watch, and ends with the cause where a list is forbidden. The error of a wait that ran out of
// time names what was missing. Deletion is told by UID. There are no informers whose events have to be filtered, and no
// precondition: the first thing that a condition sees is the first list.
//
// # Example
//
// See Example, ExampleAll and ExampleGone.
package await
