// Package writer has the rules of writes: what kube-apiserver does between a decoded request and etcd. It checks an
// object, sets the fields that the server owns, and stores the result.
//
//	wr := writer.New(s, writer.Options{})
//	s.Lock()
//	record, err := wr.Create(collection, "default", tree, writer.Write{})
//	s.Unlock()
//
// create.go, update.go, delete.go, evict.go and apply.go are the writes, validate.go checks metadata, managed.go
// records field managers, and crd.go serves the resources of CustomResourceDefinitions. Defaults, validation by schema
// and admission belong here, before an object is stored.
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
// The caller of every method holds the lock of the store. What it does under one lock is one step, which clients see
// entirely or not at all.
package writer
