// Deployment runs the controllers that turn Deployments into ReplicaSets and those into Pods, as kube-controller-manager
// does, and if it is asked to a simulation of what makes Pods run. See README.md.
package main
