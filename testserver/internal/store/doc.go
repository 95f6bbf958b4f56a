// Package store keeps the objects of a server in memory, with their versions and their history. It corresponds to etcd
// and the watch cache of kube-apiserver. It knows nothing of HTTP, and does not say which writes are allowed: package
// writer does.
//
//	s := store.New(100, 10_000, 0)
//	s.Lock()
//	s.Define(definition)
//	c := s.Collection(definition.GroupResource())
//	record, err := s.Put(c, nil, tree)
//	s.Unlock()
//	cursor, _ := s.Cursor(c, 100) // a watch from version 100
//	step := s.Next(cursor, math.MaxUint64, 0)
//
// All collections share one version counter. Each collection is a persistent tree of records (tree.go), so a View or a
// State of any version costs a pointer. The changes of a collection form a list; a Cursor is a place in it. A change
// wakes all cursors that wait for it.
//
// # Promises
//
//  1. A View, a State and a Record never change.
//  2. A cursor finds exactly the changes after its version, in order. Neither Compact nor the bound of the history
//     takes changes from a cursor.
//  3. A record is encoded once, when it is written. Its members have the order of kube-apiserver.
//  4. Equal seeds and equal calls give equal UIDs and names.
//
// # Concurrency
//
// One mutex guards a store. A writer holds it (Lock) from its read to the end of its write; methods say whether their
// caller holds it. The package starts no goroutine, and nothing blocks except on the mutex.
package store
