// Package wireplan decodes messages of protobuf into Go structs, by the numbers in the tags of their fields, or with
// their own Unmarshal (own.go). Decisions 0012, 0017 and 0039 have the reasons. It knows nothing of envelopes, lists
// and watches.
//
// Compile makes a Plan from a type: message.go has the fields of a struct, values.go and maps.go the functions that set
// their values. The functions write through places (place.go), pointers without a type. format.go reads the wire
// format.
//
// # Promises
//
//  1. The result is that of the types' own Unmarshal.
//  2. Objects share no memory with the message.
//  3. Malformed bytes are an error. The error quotes nothing of them.
//
// # Concurrency
//
// A Plan is immutable and safe for concurrent use. A Reader belongs to one goroutine.
package wireplan
