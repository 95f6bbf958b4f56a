// Package websocket watches over WebSocket, for networks whose proxies do not keep other connections open. Watch wraps
// an apiclient.TypedClient or PartialClient and returns an api.ListerWatcher. Lists still use HTTP.
//
// Read websocket.go for Watch, handshake.go and wire.go for the connection, stream.go for messages and keepalive.go for
// pings.
//
// # Example
//
//	pods := apiclient.NewTyped[*corev1.Pod](client, podResource, "")
//	inf := informer.New(websocket.Watch(pods), informer.Options[*corev1.Pod]{})
//
// See Example.
//
// # Promises
//
//  1. A watch over WebSocket yields the same events and errors as a watch over HTTP.
//  2. The handshake is a request of the client. It has the newest credentials and certificates, and uses the same
//     proxies.
//  3. A failed handshake is the error that a request with this answer returns. Another answer is an *UpgradeError. A
//     redirect is not followed.
//  4. Only a regular end of the connection ends the watch without an error. A part of an event is never yielded.
//  5. Text messages are decoded as JSON and binary messages as protobuf, in any number of fragments.
//  6. A message that is too large is refused before it is held in memory.
//  7. A dead connection ends after 45 seconds. A live one does not end, also if messages or their reader are slow.
//  8. The end of the context ends the watch at once and leaves nothing behind.
//
// # Concurrency
//
// A ListerWatcher is safe for concurrent use. Each watch has its own connection and owns no goroutine: its loop runs on
// the caller's. A timer sends pings, and the end of the loop waits for a ping that is being sent.
//
// # Differences from client-go
//
// client-go has no watch over WebSocket.
package websocket
