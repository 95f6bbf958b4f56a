// Package kubelet makes Pods run where there are no nodes: a scheduler and all the kubelets of a cluster, as far as a
// ReplicaSet can tell.
//
// # Place in the pipeline
//
// At its end: a reconciler of Pods, which binds them, has them start and has them end.
//
// # Guarantees
//
//  1. A Pod is bound, then runs after its time, then ends after its time, each once (TestLifeOfAPod).
//  2. A Pod with an image whose tag is "broken" never becomes ready (TestBrokenImages).
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different Pods at once, and waits for nothing but the server's answers.
//
// # Differences from client-go
//
// Nothing there corresponds to it; kwok does something of the kind.
package kubelet
