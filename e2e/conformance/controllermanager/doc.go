// Package controllermanager tests that kube-controller-manager with its default flags does its work on an API server.
package controllermanager
