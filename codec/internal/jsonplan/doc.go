// Package jsonplan decodes JSON that package scan has checked into Go structs. Decision 0002 has the reasons. It knows
// nothing of lists and watches.
//
// Compile makes a Plan from a type: plan.go has the plan and simple values, struct.go the fields of a struct,
// containers.go pointers, slices, arrays and maps, known.go types such as Time and Quantity, unstructured.go maps of
// everything. share.go decides which parts objects share, and part.go refers to them. A type that decodes itself gets a
// copy without managedFields (prune.go).
//
// # Promises
//
//  1. The result is that of sigs.k8s.io/json.
//  2. An error names the field and its type. It quotes nothing of the object.
//  3. An ended context ends the decoding of a large object within milliseconds.
//
// # Concurrency
//
// A Plan is immutable and safe for concurrent use. A Reader belongs to one goroutine.
package jsonplan
