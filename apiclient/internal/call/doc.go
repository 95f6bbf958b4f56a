// Package call sends a call to a server: it makes a request, adds credentials, waits for the limiter, sends the
// request, repeats it if that is safe, and returns the answer. It knows HTTP and nothing of objects.
//
// Read call.go for what is sent, sender.go for how, retry.go for when it is sent again, body.go for the answer,
// observation.go and warning.go for the hooks, and opener.go for watches over another protocol.
//
// # Example
//
//	sender, err := call.New(call.Options{Server: "https://10.0.0.1", Fail: fail})
//	resp, err := sender.Do(ctx, call.Call{Method: http.MethodGet, Path: "/version", Accept: "application/json"})
//
// # Promises
//
//  1. A call is repeated only if the server asks for it or the connection is lost, and only if nothing can be done
//     twice. A call with the option Once is sent again only with new credentials.
//  2. Refused credentials are replaced and the call is sent once more.
//  3. The end of a context ends a call, the wait before a repetition, and the body of an answer. The error is that of
//     the context, or its Cause.
//  4. Each attempt is observed once, when its body is closed.
//  5. No error quotes a credential of four bytes or more that was sent.
//
// # Concurrency
//
// A Sender is safe for concurrent use. It holds no lock while it waits and starts no goroutine. Hooks run without a
// lock, on the goroutine of the call or of the one that closes the body.
package call
