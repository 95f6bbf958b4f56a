// Package kubelet simulates a scheduler and all kubelets of a cluster, so that Pods run without nodes. It simulates
// what a ReplicaSet can observe. It is similar to kwok.
//
// # Example
//
// New returns a controller of Pods, which a manager runs:
//
//	c := kubelet.New(kubelet.Options{Client: client, Pods: pods, Start: 2 * time.Second})
//
// # Promises
//
//  1. A Pod is bound once, runs after Options.Start, and is deleted Options.Stop after its deletion was requested.
//  2. A Pod with an image whose tag is "broken" never becomes ready.
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different Pods at the same time. It blocks until the server has
// answered.
package kubelet
