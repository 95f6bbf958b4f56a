// Package harness starts the API server that the clients of others are tested against, and what these clients need: a
// kubeconfig, kubectl, kube-controller-manager, and nodes that run pods.
package harness
