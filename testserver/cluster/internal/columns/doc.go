// Package columns makes the rows that kubectl get prints, with the printers of Kubernetes.
//
//	definition.Columns = columns.For(definition)
//
// # Promises
//
//  1. Built-in kinds have the columns and cells of kube-apiserver. Ages follow the clock of a synctest bubble.
//
// # Concurrency
//
// All functions and methods may run on any goroutine.
package columns
