// Package e2e tests leat against a real etcd and kube-apiserver. It has only tests; README.md lists them.
package e2e
