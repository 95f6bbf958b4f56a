// Package transport has the connections to one server: TLS, proxies, redirects, compression, and what happens to
// connections when certificates change.
//
// Read send.go for one request, generations.go for connections that are replaced, transport.go, proxy.go and wrap.go
// for how a connection is made, redirect.go and gzip.go for answers, certificate.go for the reasons of failures.
//
// # Example
//
//	connections, err := transport.New(transport.Options{CAFile: path}, user.Certificate(), sent)
//	resp, lease, err := connections.Send(req, used.Certificate, false)
//
// # Promises
//
//  1. A new certificate or a new authority is used by the next request. Requests in flight keep their connections,
//     which are closed when they are idle.
//  2. A dead connection is closed after 45 seconds.
//  3. An https proxy is verified by its own name and does not get the client certificate.
//  4. A redirect to another host or scheme is not followed. A redirect of a write is never followed.
//  5. A wrapped transport sees no credential.
//  6. An error of TLS names the certificate that was not accepted, and the reason.
//  7. A member of a gzip stream is returned when it is complete.
//
// # Concurrency
//
// Transports are safe for concurrent use. Their lock is held while the file of the authorities is read, and not during
// a request. The package starts no goroutine; those of net/http end with the connection.
package transport
