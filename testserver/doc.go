// Package testserver is a Kubernetes API server in memory: what `leat demo` and `leat serve` run when there is no
// cluster, and the bench on which everything else is tested.
//
// # Place in the pipeline
//
// Before the first stage: it is the API server that apiclient talks to. A Server answers over an http.Client whose
// connections are pipes in memory, so that the whole pipeline, TLS, HTTP/2 and WebSocket included, runs on the fake
// clock of a testing/synctest bubble; and over real listeners, with the same store behind them. State can be changed
// and read without HTTP (Create, Update, Edit, Delete, Get, List, Snapshot), and Inject makes the server misbehave.
//
// Answers follow kube-apiserver 1.36: status codes, reasons and causes, resource versions, selectors, pagination,
// bookmarks and streamed lists, finalizers and grace periods, server-side apply, and the order in which fields are
// written, were compared with a real one. What is not here: schemas, and so defaults, validation beyond metadata and
// strategic merge patches (415); protobuf and CBOR; columns of a Table besides Name and Age, and watches of Tables;
// admission; OpenAPI; garbage collection. Containers log what AppendLog says. What controllers do in a cluster happens at
// once: a CustomResourceDefinition is established when it is created and gone when it is deleted, and a deleted namespace
// takes its objects along.
//
// # Guarantees
//
//  1. A watch from a version sends exactly the later changes, in order, each as its selectors see it
//     (TestWatchReplaysExactly, TestWatchSelectorsFollowChanges).
//  2. All pages of a list, and every exact list, are of one version (TestContinueTokensAreConsistent,
//     TestWatchReplaysExactly); where history does not reach back so far, the answer is 410 (TestExpiredContinueToken,
//     TestHistoryIsBounded, TestWatchStarts).
//  3. Forgetting history takes nothing from a watch that is under way (TestCompactionSparesOpenWatches).
//  4. A write that changes nothing writes nothing; one based on an old version is refused (TestUpdate,
//     TestConcurrentWriters).
//  5. Equal options and equal requests give equal answers, byte for byte (TestServerIsDeterministic, TestGenerateName).
//  6. Every fault does what it says, and counts only what a client was exposed to (TestFrameFaults, TestFail,
//     TestCutAndReset, TestDisconnect, TestCompact, TestRestoreGoesBack, TestStaleReads, TestOutage).
//  7. A client that lists and watches, and lists again on 410, ends with what the server holds, whatever faults came in
//     between (TestNaiveClientConverges).
//  8. Run returns as soon as its context ends, whatever the server is doing, and leaves no goroutine behind
//     (TestRunEndsInEveryState, TestRunAgain).
//  9. No request makes the server panic, or leaves the store in pieces (FuzzHandle).
//  10. Tokens are never printed, and not in the log of requests (TestAuthentication).
//  11. A log that is followed is told whole and in order, to its last line (TestPodLogs).
//  12. A dry run changes nothing, on subresources too (TestDryRun, TestDryRunOfSubresources).
//
// # Concurrency
//
// A Server is safe for concurrent use. All state is under one lock, which no I/O and no waiting is done under. Serving
// costs net/http's goroutines and nothing more: a watch is a cursor in the history, moved by the goroutine of its own
// request; a WebSocket has two goroutines, which its request waits for. Run and Serve return once all of them are gone.
// A client that does not read blocks the goroutine of its own request, in a sync.Cond, and nobody else. In a synctest
// bubble the server must be made inside the bubble, and a client must close the bodies of answers that it does not read
// to their end, or net/http keeps goroutines for them.
//
// # Differences from client-go
//
// client-go's fake clientsets and its fake source of controllers have no HTTP, no history and no versions that expire;
// controller-runtime's envtest needs two processes and the real clock, and misbehaves only by being killed.
//
// # Example
//
// See Example and ExampleServer_Inject in example_test.go.
package testserver
