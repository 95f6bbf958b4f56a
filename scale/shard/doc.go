// Package shard divides the objects of a controller among replicas. The replicas need no other server than the API
// server: each has a Lease that says that it lives, and which ranges of hashes it works on.
//
//	Member (Lease) → ranges → followers: sources that list and watch only these ranges
//	                       → Kind.Source and Kind.Reconciler: a controller that works only in these ranges
//
// Read cut.go for the ranges of n members, plan.go for the decisions of a member, lease.go for the Lease, run.go for
// the life of a member, work.go for reconciles and the fence, and kind.go for controllers.
//
// # Example
//
//	member, err := shard.New(client, shard.Options{Group: "mill"})
//	webs := shard.For(member, informer)
//	c := controller.New("web", webs.Reconciler(reconciler), controller.Options{})
//	c.Watch(webs.Source())
//	err = m.Add(member)
//
// See Example. A member runs on every replica. If the manager has an Elector, add sharded controllers to the group
// Others, where the member is. In WarmUp, the default, a controller works only on the leader.
//
// # Promises
//
//  1. Members that see the same group compute the same ranges, without a coordinator. Each member has the same number
//     of hashes, up to a difference of fewer than n. A join moves 1/n of all hashes, and a leave less than 2/n.
//  2. Two members never hold a range at the same time. This holds on two conditions: two clocks differ in speed by less
//     than LeaseDuration/RenewDeadline (1.5 by default), and only members delete Leases of the group.
//  3. A member gets a range only after the last reconcile of its former owner in it has returned, or after the Lease of
//     that owner has expired. A Lease expires at most an hour after its last change.
//  4. When a replica gets a range, Kind.Source adds the keys of all its objects. No object is forgotten after joins,
//     ends, crashes, stops and partitions.
//  5. A replica that cannot renew for RenewDeadline stops: no work begins, contexts end with ErrLost, and Fence refuses
//     writes, also in a process that was stopped and has not noticed yet. It joins again after its work has ended.
//  6. Replicas with other rules, such as another Options.Field, never work at the same time as the group. They log one
//     error that names the other one, and wait.
//  7. When the context ends, Run waits for the work in its ranges, and deletes the Lease. Without a server, it returns
//     at most RenewDeadline/3 after the later of the deadline and the end of the work.
//  8. Labels, annotations and fields that others wrote into a Lease stay.
//
// # Concurrency
//
// Run blocks, and calls the followers on its own goroutine. UseLogger must be called before Run. Every other method
// may be called on any goroutine, at any time, and does not block. Kind.Source has one goroutine, which adds the keys
// of new ranges.
//
// # Debugging
//
// Status says what a replica holds, and what it waits for and why. If the program has a manager, the metrics
// leat_shard_*, the live page, /debug/controllers/shard-GROUP and /readyz show it; see docs/debugging.md.
//
// # Limits
//
// A replica that gets a range reads its objects from its own cache, which may be older than the last write of the
// former owner, as after a change of the leader. Writes with a resource version notice it.
//
// Fence reads the clock before each write. A process that is stopped (SIGSTOP) after this look may send one more
// request for each worker when it continues. So may a suspended machine, because its clock stands still. Only a
// resource version in the request makes the server refuse these.
//
// The hash is that of the API server (KEP-5866). It distributes UIDs evenly. Names that differ only at the end have
// hashes that are close together: of 100 namespaces team-0 to team-99 on five replicas, one replica has 90. By UID, the
// unit is the object: an object that is deleted and created again has another UID, and perhaps another owner, while the
// former owner still finishes the deleted one.
//
// # Differences from client-go
//
// client-go and controller-runtime have only leader election. For a part of a program that must run once, use package
// leaderelection beside this one.
package shard
