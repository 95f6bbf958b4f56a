// Package secret keeps credentials out of everything that people read: formatted values, logs, JSON and errors.
//
// Read secret.go for one credential, sent.go for the texts that may quote those that were sent, quote.go for the
// beginning of an answer in an error, and url.go for URLs.
//
// # Example
//
//	sent := &secret.Sent{}
//	sent.AddToken(secret.New(token))
//	return sent.CleanError(err, nil) // a proxy may have echoed the token
//
// # Promises
//
//  1. A Secret that is formatted, logged or marshalled shows only that there is one, also in a field of another value.
//     Only Reveal returns its text.
//  2. Clean removes what was sent from a text in every encoding, also if the text has only its beginning.
//     A secret below four bytes stays, and one below eight is removed where it is a whole word.
//  3. A cleaned error keeps what errors.Is finds. errors.As finds only the error that the caller kept.
//  4. Quote returns one line of at most 256 bytes, with nothing of an object.
//  5. A Sent holds at most 16 tokens.
//
// # Concurrency
//
// A Secret is immutable. A Sent is safe for concurrent use, and holds its lock only to copy its list.
package secret
