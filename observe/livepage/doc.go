// Package livepage is a web page that shows a running program: the streams of its informers, the batches, the caches,
// the handlers, the queues, the workers, the leader and the health checks, with charts of the last minutes. It also
// shows one object: its states, what changed, and its reconciles with their causes. A program for experiments adds
// buttons and a walkthrough. Only programs that import the package link it.
//
// # Example
//
//	page, err := livepage.New(livepage.Options{Program: "neighbours"})
//	admin := manager.AdminOptions{Address: "127.0.0.1:8081", Debug: true, Page: page}
//	m, err := manager.New(manager.Options{Admin: admin}) // http://127.0.0.1:8081/page/
//
// Without a manager, Register shows a part of a program, and Handler serves the page.
//
// # Promises
//
//  1. Without a viewer and without a pinned object, the page has no goroutine and no hook in the program. A request
//     begins the measurements, and they end 15 seconds after the last one.
//  2. The page answers only clients on this machine, under localhost or an IP address, and never a web page of another
//     origin. A proxy or a sidecar on loopback counts as such a client, wherever its own clients are.
//  3. A browser that shows the page runs only its own files, and sends requests only to its own origin.
//  4. Keys, objects, actions, walkthroughs, the texts of errors, and the names of replicas are only in the answers of a
//     Handler with debug. The values of the data and the annotations of Secrets are in no answer.
//  5. The page changes nothing in the program, except by actions that the program offers. Its memory does not grow with
//     the time that a program runs.
//  6. The page remembers at most 16 objects: those that somebody looks at, and up to 8 that somebody pinned. For each
//     it has at most 256 KiB of states, 64 reconciles, and 128 calls of handlers.
//
// # Concurrency
//
// All methods may be called on any goroutine. A request calls the Status and Stats methods of the parts, and at most
// every five seconds the health checks of the manager, each set with a limit of two seconds. A measured part calls the
// page on the goroutine of the part. The page then takes no lock and does not allocate. While the page remembers an
// object, it takes a lock for each change and for each call of a handler.
//
// # Differences from client-go
//
// client-go and controller-runtime have metrics and no page.
package livepage
