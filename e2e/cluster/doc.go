// Package cluster runs a real etcd and a real kube-apiserver for tests.
//
// # Place in the pipeline
//
// Before its source: this is the server whose watch stream leat leads to reconcile. It has nothing of leat in it, and
// speaks to its servers with net/http alone, so that it cannot share a mistake with what it tests.
//
// # Guarantees
//
//  1. When Ready closes, the API server serves TLS under the cluster's own authority and tells its users apart (TestServes).
//  2. RBAC decides: who is not in system:masters may do what was granted, and nothing else (TestRestrictedUser).
//  3. What was written survives a SIGKILL of the API server and of etcd; both come back where they were (TestKillAndRestart).
//  4. After Compact and a restart, a watch from before it is answered with 410 (TestCompactionExpiresVersions).
//  5. Nothing outlives Run, and no server outlives the process that started it, however that ends (TestNothingOutlivesTheProcess,
//     on Linux). What a killed process leaves on disk, the next one removes (TestSweepRemovesWhatNobodyHolds).
//  6. A server that does not start is reported with the end of its log (TestFailureShowsTheLog).
//
// # Concurrency
//
// Run blocks until both servers are gone. Every other method may be called from any goroutine while Run runs; those that
// stop or start a server exclude each other.
//
// # Differences from client-go
//
// client-go has no such thing; controller-runtime has envtest, which downloads its servers, and cannot kill one and bring
// it back with other flags, or compact its etcd.
package cluster
