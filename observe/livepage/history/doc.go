// Package history serves the page of package livepage over a recording: a slider over the recorded time, and what a
// client knew at a moment. Only programs that import it link it.
//
// # Example
//
//	file, err := recording.Open("shop.rec")
//	page, err := history.New(ctx, file.Reader, history.Options{Name: "shop.rec"})
//	http.Serve(listener, page)
//
// See the command leat show --page.
//
// # Promises
//
//  1. Streams, events, bytes and versions are those that the recorded client received. Objects and changes are what an
//     informer of that client had cached. The page says that a recording has no handlers, queues and reconciles.
//  2. Each answer is that of the moment in its request, so the page goes back as well as forward, and each browser has
//     a time of its own.
//  3. A damaged file is shown as far as possible. The page names the times that are missing.
//  4. The page answers only clients on this machine, and never a web page of another origin. The values in the data and
//     the annotations of Secrets are in no answer.
//  5. The page never changes the recording, and its memory does not grow with requests.
//
// # Concurrency
//
// A Page is safe for concurrent use. This package starts no goroutine.
package history
