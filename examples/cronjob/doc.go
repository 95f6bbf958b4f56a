// Cronjob is the operator of kubebuilder's tutorial on leat: it starts a Job in each period. docs/operator.md explains
// it.
package main
