// Package e2e tests the whole of leat against a real etcd and kube-apiserver. It has tests only; README.md says which.
package e2e
