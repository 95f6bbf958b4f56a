package apiclient

// InClusterAt is InCluster with another environment and directory.
var InClusterAt = inCluster

// InClusterNamespaceAt is InClusterNamespace with another environment and directory.
var InClusterNamespaceAt = inClusterNamespace
