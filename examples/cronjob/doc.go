// Cronjob is the operator of kubebuilder's tutorial on leat: it starts Jobs at a period. docs/operator.md explains it.
package main
