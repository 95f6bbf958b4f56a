// Package websocket watches over WebSocket, for networks whose proxies let nothing else stay open.
//
// # Place in the pipeline
//
// Beside the HTTP watch of apiclient: Watch wraps an apiclient.TypedClient or PartialClient and is an api.ListerWatcher
// like it. Lists go over HTTP as before.
//
// # Guarantees
//
//  1. It passes the conformance suite that watches over HTTP pass, errors included (TestSuite).
//  2. The handshake is a request of the client: it carries the newest credentials and certificates, an Origin, and asks
//     for no sub-protocol and no extension (TestHandshake, TestEachWatchHasTheNewestToken, TestARefusedTokenIsReplaced,
//     TestEachWatchHasTheNewestCertificate).
//  3. It goes through the proxies that requests go through (TestProxies).
//  4. The answer to a handshake that failed is the error that it would be to a request, also when it was cut; any other
//     answer is an UpgradeError, and a redirect is not followed (TestFailedHandshakes, TestTransports). A handshake that
//     is not answered ends when a request would (TestHandshakesThatTakeTooLong).
//  5. The end in good order is none; any other is an error that says how it ended (TestHowAConnectionEnds,
//     TestAConnectionThatEndsBeforeAnyEvent). Half an event is never one (TestMessages, TestAnIncompleteMessageEndsTheWatch).
//  6. Text messages are read as JSON and binary ones as protobuf, in any number of fragments (TestMessages). What they
//     hold is what the same bytes over HTTP hold, whatever they are (FuzzMessages).
//  7. A message that is too large is refused as over HTTP, before it is held (TestSizes).
//  8. A connection that is dead ends after 45 seconds, and none that lives does, however slow its messages or their
//     reader (TestPings, TestSilence, TestASlowReaderIsNotSilence, TestAServerThatOnlySends, TestHalfOpenConnection).
//     One whose server is gone behind a proxy that lives ends as over HTTP (TestABrokenPromise).
//  9. A context that ends, ends the watch at once and leaves nothing behind (TestCancellationLeavesNothing).
//
// # Concurrency
//
// A ListerWatcher is safe for concurrent use. Each watch has a connection of its own and no goroutine but that of its
// loop (TestAWatchHasNoGoroutine): pings are sent by a timer, and the loop's end waits for one that is being sent.
//
// # Differences from client-go
//
// client-go has no watch over WebSocket.
//
// # Example
//
// See Example in example_test.go.
package websocket
