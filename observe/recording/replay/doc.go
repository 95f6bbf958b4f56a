// Package replay serves a recording as a Kubernetes API: a test server gets the recorded objects, and then the recorded
// changes, with their UIDs, resource versions and pauses. Any client can list and watch it.
//
// # Example
//
//	timeline, err := recording.Load[*unstructured.Unstructured](ctx, file.Reader, nil)
//	server := testserver.New(replay.Options())
//	player, err := replay.New(server, timeline)
//	go server.Run(ctx)
//	err = player.Run(ctx, 10, nil) // ten times as fast
//
// See the command leat replay. recording.NewSource has the same for one informer, without a server.
//
// # Promises
//
//  1. A client that lists and watches the server ends with the recorded state, and each object has its recorded UID and
//     version.
//  2. Changes come in the order of their versions, with the recorded pauses between them, divided by the speed.
//  3. A server with Options refuses writes.
//
// # Concurrency
//
// One goroutine at a time uses a Player. Only Run blocks, until the last change is played or its context ends. This
// package starts no goroutine.
package replay
