// Package wire reads requests and writes answers in the forms of the Kubernetes API: it negotiates the representation,
// encodes objects, lists, tables and watch events, reads bodies and parameters, and encodes errors as a Status. It
// decides nothing about objects.
//
//	media, err := wire.Negotiate(accept, false, definition.Custom)
//	shape := wire.NewShape(media, definition, "v1")
//	body := shape.AppendObject(nil, record)
//
// A Shape is one representation of one resource. All representations are JSON; another format, such as protobuf, is
// another Shape, which Negotiate selects. A Sink carries the events of a watch, over HTTP or a WebSocket.
//
// # Promises
//
//  1. JSON has the order of fields of kube-apiserver, and metadata only if the client requests metadata only.
//  2. A request that kube-apiserver rejects for its header, its parameters or its body gets the same code and reason.
//  3. No input makes a function panic.
//
// # Concurrency
//
// The functions have no state. A Sink belongs to the goroutine of its request; that of a WebSocket has two goroutines,
// which end with Release.
package wire
