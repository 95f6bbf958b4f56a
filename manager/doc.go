// Package manager runs a program that consists of controllers. It starts servers and caches first, then controllers,
// and ends them in the opposite order. It lets one replica work at a time, and serves health checks. Informers,
// controllers, recorders and servers are added to a Manager; main calls only its Run.
//
//	start   servers → caches → others → warm-up → election → elected
//	end     elected and warm-up → election → others → caches → servers
//
// A runnable of your own works only on the leader: it starts when this replica leads, and ends before the lease is
// released. A Placement, or a method NeedLeaderElection that returns false, makes it work on every replica. The default
// is controller-runtime's, because the other one would let two replicas do the work of one without a warning.
//
// Read manager.go for the API, runnable.go for what a runnable may implement, group.go for the groups, run.go for the
// life of all runnables and registration.go for that of one; checks.go, admin.go and server.go serve requests.
//
// # Example
//
//	m, err := manager.New(manager.Options{Elector: elector, Admin: manager.AdminOptions{Address: ":8081"}})
//	err = m.Add(pods, controller) // an informer and a controller that reads it
//	err = m.Run(ctx)              // blocks until ctx ends or a runnable fails
//
// See Example.
//
// # Promises
//
//  1. A group starts when the previous one is ready: servers listen, and caches hold their first lists. A runnable that
//     is not ready in time ends Run with an error that names it and the reason.
//  2. A group ends when all later groups have ended: caches outlive the workers that read them, and the admin server
//     answers until the end.
//  3. Controllers fill their queues on every replica, so a new leader need not list. A replica that cannot warm up does
//     not block the others; the log says why.
//  4. The lease is released after the last worker has ended. If a worker outlives the grace period, the lease is not
//     released.
//  5. After losing the lease, Run stops all runnables, does not wait, and returns an error with the reason.
//  6. A failure or a panic of a runnable ends all others in order, and Run returns all errors.
//  7. Run returns within the grace period, and names the runnables that did not end by then. A recorder has the whole
//     of it to write its last Events.
//  8. The admin server limits slow clients and refuses web pages of other origins. It shows profiles, keys and errors
//     only if the options allow it.
//
// # Concurrency
//
// Run blocks and starts a goroutine for each runnable. All of them have ended when Run returns, except those that a
// *GraceError names and those that run after the lease was lost. All other methods may be called on any goroutine, at
// any time, and do not block. The context of a runnable ends when its group ends, not with the context of Run; it has
// the same values. Checks and handlers run on the goroutines of requests. The manager holds no lock while it calls user
// code.
//
// # Differences from client-go
//
// client-go has no manager; controller-runtime has. Here, main or package program makes clients and caches and adds
// them. The manager gives its logger and its metrics to what is added. Controllers warm up by default. Servers end
// last, and a recorder is one of them, so it can write the last Events. Runnables and checks can be removed, and added
// late. If a worker runs longer than the grace period, the lease is not released. Releasing is therefore safe, and the
// default. Caches have a timeout. To share options, main gives the same controller.Options to each controller. A
// runnable that panics ends the manager, not the process; a server or a cache that ends early is a failure. There are
// /livez, a check of the caches, and a check that fails during the end. A GracePeriod of 0 means the default; in
// controller-runtime it means DoNotWait.
package manager
