// Package namespaces deletes the contents of namespaces that are being deleted, and then lets the namespaces go. It
// corresponds to the namespace controller of kube-controller-manager, and works with any API server that keeps deleted
// namespaces; see testserver.Options.NamespaceLifecycle.
//
// Read controller.go for the steps of a deletion, content.go for the requests, and conditions.go for the status.
//
// # Example
//
//	err := namespaces.New(client, namespaces.Options{}).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. A namespace that is being deleted stays until all its objects are gone. Pods are deleted first, and everything
//     else after the last pod.
//  2. The five conditions of the status say what failed and what remains, in the words of Kubernetes.
//  3. Only the finalizer "kubernetes" of the spec is removed. Other finalizers keep the namespace.
//
// # Concurrency
//
// Run has the goroutines of one controller and one informer. They end with its context.
package namespaces
