// Package accounts gives each namespace what pods expect there: the service account "default", and the ConfigMap
// kube-root-ca.crt with the certificate of the API server. It corresponds to two controllers of
// kube-controller-manager, and works with any API server.
//
// # Example
//
//	err := accounts.New(client, accounts.Options{CA: server.CA()}).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. Every namespace that is not being deleted has both objects. They are created again after a deletion, and the
//     ConfigMap gets its content back after a change.
//
// # Concurrency
//
// Run has the goroutines of one controller and three informers. They end with its context.
package accounts
