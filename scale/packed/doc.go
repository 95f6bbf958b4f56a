// Package packed keeps the objects of an informer as bytes instead of decoded structs. A whole Pod takes a quarter of
// its memory in client-go then, and less with a compression. Decoded Pods of leat share equal parts: with many replicas
// they take nearly as little, but a first list takes about twice the processor time. Decoded Pods that share nothing
// take 2.6 times as much as bytes; docs/benchmarks.md has the figures. Use it for types that a program needs whole. If
// it needs a few fields, a struct that declares only those is smaller and faster.
//
// The bytes are those of the server: protobuf for types that have it, otherwise JSON, in both cases without
// managedFields. Get and List decode them, and the caller owns the result. Decoding a Pod costs about as much as
// copying it, which a reader of a cache of structs has to do before it may change the object. Events are not decoded,
// unless a handler, an index function, a predicate or a Transform needs the object.
//
// # Example
//
//	pods := informer.New(client, informer.Options[*corev1.Pod]{Hold: packed.Bytes[*corev1.Pod]()})
//	pod, exists := pods.Cache().Get(key) // a new copy
//	pod.Labels["mine"] = "yes"           // the caller owns it
//
// With the module scale/packed/zstd, packed.Coded[*corev1.Pod](zstd.Train) keeps them compressed. See Example.
//
// # Promises
//
//  1. Handlers, readers and indexes get what they get from an informer that keeps decoded objects: the same objects,
//     in the same order, at the same versions.
//  2. The caller owns each object that a read returns. Handlers and index functions share theirs.
//  3. Every cached object can be decoded: an object that cannot is reported when it arrives, as undecodable.
//  4. A handler with IdentityOnly, such as a controller's For without predicates, makes no object be decoded.
//  5. A coding is trained once, with the first objects of the first list.
//  6. Objects that have changed stay plain up to a total of 4 MiB. Those that changed last are the last to be encoded.
//
// # Concurrency
//
// Reads decode on the caller's goroutine and do not wait for each other. Objects for handlers are decoded on the
// goroutines of the handlers, those for index functions on Run's goroutine. Packing and training run on the reflector's
// goroutine. This package starts no goroutine.
//
// # Limits
//
// Fields that the encoding has no place for are lost, as on the way to a server: those that a Transform sets in fields
// with the tag json:"-". Protobuf does not tell an empty list from a missing one. An index function decodes the old and
// the new state of each change, at most once for all indexes. A type in JSON that is not unstructured is decoded once
// when it arrives, to find undecodable objects.
package packed
