// Package subject is the part of a measured process that is the same for every library. It does the work that the
// runner requests, with a Library, and reports what the work used. cmd/leat, cmd/client-go and cmd/controller-runtime
// consist of this package and a library.
//
// All libraries are measured between the same two points by the same code. A work that a library cannot do is an error,
// never a figure.
//
// # Concurrency
//
// A process does one work and ends. Main blocks until then.
package subject
