// Package causes gives the causes of Invalid errors an order that does not change.
//
//	return nil, causes.Order(rest.BeforeCreate(strategy, ctx, obj))
//
// # Promises
//
//  1. Equal requests get equal errors. The order of the causes is one that kube-apiserver may give, too.
//
// # Concurrency
//
// All functions may run on any goroutine.
package causes
