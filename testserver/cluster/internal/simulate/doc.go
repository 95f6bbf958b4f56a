// Package simulate runs pods without machines: it is the nodes, the scheduler and the kubelets of a cluster, as far as
// other clients can observe them. It works with any API server that has no nodes of its own.
//
// Read nodes.go for nodes, schedule.go and usage.go for where a pod goes, life.go for the whole life of a pod as one
// pure function, container.go for that of a container, kubelet.go for the requests, and metrics.go for metrics.k8s.io.
//
// # Example
//
//	nodes := simulate.New(client, simulate.Options{Start: 2 * time.Second})
//	err := nodes.Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. A pod goes to a node that is ready and has room for its requests, and whose labels and taints allow it. If there
//     is no such node, the condition PodScheduled says why, and the pod is tried again when nodes or pods change.
//  2. A pod runs Options.Start after it was bound. It gets an address of its own, and each container a status.
//  3. Options.Image decides what the containers of an image do: run, end with an exit code, never become ready, or fail
//     to be pulled. Containers restart as restartPolicy says, with the pauses of a kubelet.
//  4. A pod whose containers may end, such as that of a Job, succeeds or fails.
//  5. A deleted pod stops after Options.Stop or its grace period, whichever is shorter, and is then removed.
//  6. A node whose condition Ready is not True does nothing, as if it were disconnected. The others renew their Leases.
//     The taints with the effect NoSchedule follow the conditions of each node.
//  7. Metrics are the present state: those of running pods on ready nodes, computed for each read.
//
// # Concurrency
//
// Run has the goroutines of three controllers and two informers. They end with its context. Times in the status of a
// pod have whole seconds, so delays are rounded to the seconds of the clock.
package simulate
