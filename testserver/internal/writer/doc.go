// Package writer has the rules of writes: what kube-apiserver does between a decoded request and etcd. It checks an
// object, sets the fields that the server owns, and stores the result.
//
//	wr := writer.New(s, writer.Options{})
//	record, created, err := wr.Submit(ctx, &writer.Submission{Collection: pods, Verb: "create", Change: change})
//
// submit.go is the path of every creation and update: the change, field managers, admission, the rules of the Schema,
// and the store. untyped.go is the Schema of resources without types. delete.go and evict.go are deletions, and crd.go
// serves the resources of CustomResourceDefinitions.
//
// # Promises
//
//  1. A write that changes nothing stores nothing, a write that is based on an old version is a conflict, and a dry run
//     stores nothing.
//  2. An error is a Status with the code, the reason and the causes of kube-apiserver. After an error, nothing is
//     stored.
//  3. Work of controllers that other objects depend on happens in the same step: a CustomResourceDefinition is
//     established, and a deleted namespace takes its objects along.
//
// # Concurrency
//
// The comment of a method has whether its caller holds the lock. What happens under one lock is one step, which clients
// see entirely or not at all. Submit prepares a write without the lock, and begins again if the object changes
// meanwhile.
package writer
