// Package codec decodes the bytes of a Kubernetes API server into objects of one Go type, and encodes objects. It knows
// JSON and Kubernetes' protobuf. apiclient reads answers with it; testserver reads and writes them. Its only I/O is
// reading from the given readers.
//
// A format (format.go) is everything that depends on the Content-Type: json*.go is JSON, protobuf*.go is protobuf. An
// answer (answer.go) is what all formats have in common: it checks kinds, reuses objects that the caller already holds,
// and reports those that cannot be decoded. Another encoding is another group of files and an entry in formats.
//
// An answer passes three layers, in packages below internal. A scan.Window holds the current part of the stream. The
// scan.Scanner, or for protobuf the lengths on the wire, finds the end of an object. A plan, compiled once from T,
// decodes the object into a T and skips everything that T does not declare: package jsonplan for JSON, wireplan for
// protobuf. Package plan has what both share. A Mask (mask.go) removes bytes before the plan sees them. Between the
// last two layers, a format reads the metadata.
//
// # Example
//
//	c := codec.New[*corev1.Pod](codec.Options{}) // once, for all answers
//	meta, err := c.DecodeList(ctx, body, contentType, pods, api.Options[*corev1.Pod]{}, func(pod *corev1.Pod) error {
//		return store(pod) // each item, when its last byte has arrived
//	})
//
// See ExampleCodec_DecodeList, ExampleCodec_NewEventReader and ExampleMarshal.
//
// # Promises
//
//  1. JSON is accepted and rejected as by sigs.k8s.io/json, with the same results, and every byte is checked, also in
//     skipped values.
//  2. Protobuf gives the same results as the types' own Unmarshal, and as JSON for a struct whose fields all have
//     numbers. apimachinery can read the output of Marshal.
//  3. An object is handed out when its last byte has arrived. A stream holds at most one object, whose size has a
//     limit.
//  4. A malformed answer is a typed error; it causes no panic and does not affect the next answer.
//  5. An object that cannot be decoded is reported by name, and the others are still decoded. The error names the field
//     and its type. It has about a kilobyte at most and quotes nothing of the object.
//  6. An object whose UID and version the caller already holds is reused: it is not decoded and costs no allocation.
//  7. managedFields can be skipped in every type. A Mask keeps the fields that it names, with the same values, and its
//     objects and their copies have a mark. Repeated strings are shared; the number of kept strings has a limit. So are
//     equal parts of objects, if api.Options.ShareParts is set.
//  8. Objects share no memory with the stream. Slices from protobuf have no spare capacity, so an append makes a copy.
//
// # Concurrency
//
// A Codec is safe for concurrent use. Only its tables of strings and parts change; a look-up of a part holds a lock for
// a moment. All values for one answer belong to one goroutine, and the callbacks of api.Options and each run on it.
// Reading blocks as the reader blocks; close the reader to end it. The context of a call ends the part that does not
// wait for the reader: the decoding of a large object ends within milliseconds. A type that decodes itself cannot be
// interrupted. This package starts no goroutine.
//
// # Differences from client-go
//
// client-go reads the whole answer, then makes the whole list, then copies the items out of it; here items stream. A
// decoder is compiled for one Go type and has no scheme. A struct that looks generated is decoded by its field numbers
// and not by its Unmarshal; LetTypesUnmarshal is for other structs. Typed objects keep their apiVersion and kind, also
// in a list, where servers omit them and client-go clears them. So an object is the same however it arrived. Metadata
// has the kind of its object, not PartialObjectMetadata. client-go's errors include the text of a type's own
// UnmarshalJSON, which may quote the value. Here a quantity of more than a kilobyte is an error: parsing 16 MiB of
// digits takes minutes.
package codec
