// Package aggregation keeps the APIServices of custom resources, and answers for the groups that an APIService gives to
// a Service. The server does not connect to Services: these groups are unavailable.
//
//	a := aggregation.New()
//	a.Connect(store)
//	err := a.Run(ctx)
//
// # Promises
//
//  1. Every served version of custom resources has an APIService, which Run restores if it is deleted and deletes with
//     the version.
//  2. A request for a version that an APIService gives to a Service gets 503, as from kube-apiserver when the Service
//     does not answer. The group is in the discovery documents, and the status of the APIService says why it is not
//     available.
//
// # Concurrency
//
// Serve and Groups may be called from any goroutine. Run has none of its own.
package aggregation
