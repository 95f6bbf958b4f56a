// Package maskguard keeps masked objects from being written by the clients of client-go and controller-runtime. A
// masked object lacks fields, so an update with it would delete these fields on the server. leat's own clients refuse
// masked objects by themselves: see codec.Mask. The adapters use this package.
//
// # Promises
//
//  1. A create, an update, an update of a subresource or an apply of a masked object is an error that names its fields,
//     and is not sent. All other requests are sent unchanged.
//
// # Concurrency
//
// A guard is safe for concurrent use and starts no goroutine.
package maskguard
