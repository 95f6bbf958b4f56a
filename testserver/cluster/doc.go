// Package cluster is a Kubernetes API server in memory that clients with their defaults accept. It adds to testserver
// what needs the code of Kubernetes: types, defaults, validation, protobuf, OpenAPI, and the behaviour of a cluster.
//
// # Example
//
//	func TestController(t *testing.T) {
//		c := cluster.Start(t, cluster.Options{CRDDirectoryPaths: []string{"config/crd"}})
//		client, err := kubernetes.NewForConfig(c.Config()) // client-go; controller-runtime takes the same configuration
//		…
//	}
//
// The test may run in a testing/synctest bubble: the connections are in memory, and the server uses the clock of the
// bubble. Server has the faults, the request log, and the methods that read and change the state without HTTP.
//
// Fork makes a cluster with the state of another one in about 2 ms, so each test can have its own; docs/envtest.md says
// what a fork shares.
//
// # Promises
//
//  1. Built-in resources have the types, defaults, validation and strategies of kube-apiserver 1.37, because they are
//     those of Kubernetes itself.
//  2. A fork and its parent never see each other's later writes. A fork has the state of its parent at one version.
//
// # Concurrency
//
// All methods may be called on any goroutine. Run, Serve and the function that Start leaves to the end of the test
// return after all goroutines of the cluster have ended.
//
// # Differences from client-go
//
// The fake clientsets of client-go have no HTTP, no validation and no history. The envtest of controller-runtime starts
// etcd and kube-apiserver, which needs binaries, seconds and the real clock.
package cluster
