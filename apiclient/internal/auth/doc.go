// Package auth has what a client and a server prove to each other: the token, the password and the certificate of a
// user, and the authorities that may sign the server's certificate. It reads their files again when they are replaced.
//
// Read user.go for the headers of a request, source.go for credentials that change, authorities.go and certificate.go
// for certificates, and file.go for files.
//
// # Example
//
//	user, err := auth.NewUser(auth.Options{TokenFile: path}, sent)
//	used, err := user.Apply(ctx, req.Header)
//
// # Promises
//
//  1. A file that was replaced is read by the first request after five seconds, and at once after Refused.
//  2. A file that is missing, empty or half written changes nothing. Stale returns why.
//  3. A certificate and its key are replaced together.
//  4. A file is read again after a minute even if it looks unchanged.
//  5. Errors name the field and the path, and never the content.
//
// # Concurrency
//
// A User is safe for concurrent use. A request may read the files of the Options under a lock, but only regular files.
// Authorities are not safe for concurrent use; package transport has a lock for them. The package starts no goroutine.
package auth
