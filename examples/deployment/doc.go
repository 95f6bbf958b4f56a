// Deployment runs the controllers that turn Deployments into ReplicaSets, and ReplicaSets into Pods, as
// kube-controller-manager does. On request it also simulates a scheduler and kubelets. See README.md.
package main
