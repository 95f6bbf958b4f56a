// Package front is what kube-apiserver does in its own process: it reads flags and files, asks an etcd of leat-server
// to serve, and waits. Programs with these names run before main; see early.go.
//
// # Example
//
//	f, code := front.ParseEtcd(os.Args[1:], os.Stdout, os.Stderr)
//
// # Promises
//
//  1. The programs take the flags of the real ones, with their types. Flags without an effect are named once.
//  2. A kube-apiserver without an etcd ends after --storage-initialization-timeout, by default a minute.
//  3. Keys and tokens appear in no error.
//
// # Concurrency
//
// RunAPIServer blocks until its context ends, and ends everything that it started.
package front
