// Package identity finds out who sends a request: bearer tokens, tokens of service accounts, client certificates,
// anonymous requests and impersonation. It also answers the reviews of tokens and of access.
//
//	who := identity.New(factory, identity.Options{Tokens: map[string]registry.User{token: {Name: "ann"}}})
//	user, err := who.Authenticate(request)
//
// # Promises
//
//  1. Texts of errors and of Format never contain a credential.
//  2. The token of a service account is invalid when the account or the object that the token is bound to is deleted,
//     and when it has expired.
//
// # Concurrency
//
// All methods may be called from any goroutine that does not hold the lock of the store.
package identity
