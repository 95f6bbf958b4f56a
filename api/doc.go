// Package api is the vocabulary of leat: what an object is, how it is named, what a server can be asked.
//
// # Place in the pipeline
//
// Below everything. Every package speaks these words, and none of them does I/O.
//
// # Guarantees
//
//  1. Versions that are not decimals are compared for equality only (TestCompareVersions).
//  2. FormatKey and ParseKey are inverse (TestKeyRoundTrip).
//  3. A clone shares no memory that either side can change (TestCloneSharesNothing).
//
// # Concurrency
//
// Everything here is a value or a pure function and may be used from anywhere. Clone caches the copier of a type; the
// cache is safe for concurrent use.
//
// # Differences from client-go
//
// Object asks for four methods where metav1.Object asks for some thirty. A Key is a struct, never a formatted string.
// A ListerWatcher streams: no list, and no page of a list, is ever held whole.
package api
