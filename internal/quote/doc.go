// Package quote limits what errors quote of texts that others have written: a server, a file, a program. An error is
// kept in a status, logged and printed. A long error costs memory three times, and the content of an object may be
// secret.
//
// # Example
//
//	return fmt.Errorf("codec: kind %q is not supported", quote.Short(kind, 64))
//
// # Promises
//
//  1. A text is not longer than its limit. A text that was cut is valid UTF-8 and ends with an ellipsis.
//  2. An error about JSON names the place, the field and the type, and quotes at most one character.
//  3. A list has at most ten items of 128 bytes each, and the number of the others.
//  4. An object of Kubernetes is recognised in JSON, YAML and protobuf, also if only its beginning is there.
//
// # Concurrency
//
// The package has only functions.
//
// # Differences from client-go
//
// client-go's errors quote up to 2,048 bytes of an answer that is not a Status, and the text of a decoder that failed.
package quote
