// Package websocket watches over WebSocket, for networks whose proxies let nothing else stay open.
//
// # Place in the pipeline
//
// Beside the HTTP watch of apiclient: Watch wraps an apiclient.Resource or Projection and is an api.ListerWatcher like
// it. Lists go over HTTP as before.
//
// # Guarantees
//
//  1. It passes the conformance suite that watches over HTTP pass, errors included (TestSuite).
//  2. The handshake carries the credentials of requests, an Origin, and no sub-protocol (TestHandshake).
//  3. The answer to a failed handshake is the error that it would be to a request, also when it was cut
//     (TestFailedHandshakes).
//  4. The end in good order is none; any other is an error that says how it ended, and half an event is never one
//     (TestHowAConnectionEnds).
//  5. Text messages are read as JSON and binary ones as protobuf (TestBinaryMessagesAreProtobuf).
//  6. A connection that is dead ends after 45 seconds (TestPings).
//  7. A context that ends, ends the watch at once and leaves nothing behind (TestCancellationLeavesNothing).
//
// # Concurrency
//
// A ListerWatcher is safe for concurrent use. Each watch has a connection of its own, and beside the goroutine of its loop
// one that sends pings; the loop's end waits for that.
//
// # Differences from client-go
//
// client-go has no watch over WebSocket.
//
// # Example
//
// See Example in example_test.go.
package websocket
