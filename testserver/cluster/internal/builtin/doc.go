// Package builtin has the built-in resources of Kubernetes: their Go types, defaults, validation and strategies. These
// are the ones of Kubernetes itself, used as a library.
//
//	resources := builtin.Resources()
//
// # Promises
//
//  1. Discovery lists the resources, verbs, names and subresources that kube-apiserver serves with default settings.
//  2. A write gets the defaults, the removed fields, the generation and the errors of the strategies of Kubernetes.
//  3. Equal requests give equal objects.
//
// # Concurrency
//
// The functions and the schemas may run on any goroutine.
package builtin
