// Package bootstrap has the objects with which kube-apiserver begins: APIServices, the Service of the API itself,
// priorities of requests and of pods, and with RBAC the roles and their bindings.
//
//	err := bootstrap.Install(store, bootstrap.Options{RBAC: true})
//
// # Promises
//
//  1. The objects are those of kube-apiserver 1.37, with their managedFields.
//  2. The objects are prepared once in a process. Each server stores copies of them.
//
// # Concurrency
//
// Install may run for several stores at a time.
package bootstrap
