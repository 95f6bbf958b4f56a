// Package cluster runs a real etcd and a real kube-apiserver for tests. It uses net/http and nothing of leat, so that
// it cannot share an error with the tested code.
//
// # Promises
//
//  1. When Ready closes, the API server serves TLS with the cluster's own authority and distinguishes its users.
//  2. RBAC applies: a user outside of system:masters may do only what was granted.
//  3. Data survives a SIGKILL of the API server and of etcd. Both restart with their state.
//  4. After Compact and a restart, a watch from an earlier version gets 410.
//  5. All servers end with Run or, on Linux, with the process that started them, however it ends. The next process
//     removes the files of a killed one.
//  6. If a server does not start, the error has the end of its log.
//
// # Concurrency
//
// Run blocks until both servers are gone. All other methods may be called on any goroutine while Run runs. Methods that
// stop or start a server exclude each other.
//
// # Differences from client-go
//
// envtest of controller-runtime downloads its servers. It cannot kill a server and restart it with other flags, or
// compact its etcd.
package cluster
