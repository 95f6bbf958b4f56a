// Package recording writes what an API server sends about resources to a file, and reads it again: for bug reports, for
// questions about the past, and for tests of a reconciler against what production sent. Only programs that import it
// link it.
//
// Read tap.go and recorder.go for the way of the bytes to the disk, internal/redact for what is hidden, format.go for
// the file, reader.go for its records, timeline.go for the objects in them, and source.go for tests.
// Package replay serves a recording.
//
// # Example
//
//	recorder, err := recording.New(file, recording.Options{})
//	go recorder.Run(ctx) // writes until ctx ends
//	client, err := apiclient.New(apiclient.Config{Host: host, WrapTransport: recorder.Wrap})
//	// every list and watch of client is recorded from here on
//
//	file, err := recording.Open("shop.rec")
//	timeline, err := recording.Load[*corev1.Pod](ctx, file.Reader, nil)
//	for _, change := range timeline.At(timeline.Resources()[0], noon) { // the pods that the client knew at noon
//
// See the commands leat record and leat show.
//
// # Promises
//
//  1. A recording has the bytes that the client read, in whole frames, with the times when they arrived.
//  2. No header and no body of a request is written. The values of Secrets, except those of known plain fields,
//     and the values of other redacted fields are replaced by keyed hashes before they reach the disk. For a resource
//     with redactions, so is each value around the objects that no list and no watch has. An answer in which nothing
//     can be redacted is not written, and one of another form ends as lost.
//  3. The client never waits for the disk, unless Options.Wait is set. If the disk is too slow or full, the recording
//     ends, and the client continues.
//  4. A killed process loses at most the last second. Memory does not grow with uptime.
//  5. A recording that was cut at any byte, or damaged in the middle, is read as far as possible. The reader reports
//     which bytes and which times are missing. What a file may cost is bounded by its size.
//  6. A timeline has at every moment what the running informers of the client had cached.
//  7. An informer of a source of a recording gets the same changes at the same fake times in every run of a test.
//
// # Concurrency
//
// A Recorder is safe for concurrent use; the goroutine of Run writes. A Reader is safe for concurrent use, and a
// Timeline never changes. This package starts no goroutine.
package recording
