// Package leaderelection lets one of several replicas lead. The leader holds a Lease of coordination.k8s.io, and runs
// a function for as long as it holds it. A manager runs its controllers in this function; caches run on every replica.
//
// # Example
//
//	elector, err := leaderelection.New(client, leaderelection.Options{Namespace: "default", Name: "mill"})
//	err = elector.Run(ctx, func(ctx context.Context) error { // blocks until the replica leads and the function returns
//		return controllers.Run(ctx) // ctx ends when the lease is lost
//	})
//	if errors.Is(err, leaderelection.ErrLost) { // the program should end
//
// See Example.
//
// # Promises
//
//  1. At most one replica leads at a time. This holds on three conditions: two clocks differ in speed by
//     less than LeaseDuration/RenewDeadline (1.5 by default), the function returns when its context ends, and a replica
//     with another library has a lease of at most an hour.
//  2. Clocks of different machines are never compared. A lease has expired when this process has seen no change of it
//     for its duration, so wall clocks may differ by hours and may jump. A longer duration than an hour counts as an
//     hour.
//  3. A leader that cannot renew for RenewDeadline stops leading, and so does one that sees another holder, at once.
//     Run then returns ErrLost, with the lease and the cause, after the function has returned.
//  4. When the context ends, the lease is renewed until the function has returned, and released only then. So the next
//     leader never begins before the last one has ended; it begins within one retry.
//  5. A leader that dies is followed by another within LeaseDuration and one retry, which is at most 2.2 × RetryPeriod.
//  6. The end of the context ends Run in every state; at once if the replica does not lead.
//  7. Labels, annotations and fields that others wrote into the lease stay.
//  8. Check fails for a leader that has not renewed for LeaseDuration and a tolerance, and for no other replica.
//
// With the defaults, the factor of promise 1 is 1.5. No factor holds for the clock of a suspended machine, because it
// stands still. Leading is false after RenewDeadline even on such a machine, but a write may follow later: only the
// server can reject such a write, by the resource version in it.
//
// # Concurrency
//
// Run blocks. It calls the function on another goroutine and returns after the function has. Elected, Leader, Leading
// and Check may be called on any goroutine, at any time, and do not block. Options.OnLeader and OnLeading are called on
// Run's goroutine and delay the next renewal while they run.
//
// # Differences from client-go
//
// When the context ends, client-go stops renewing before the work has ended; here the work ends first. The work is one
// function that returns, instead of two callbacks. A lease that another replica holds is lost at once, not after the
// renew deadline. A lease of more than an hour, which no Elector can have, counts as one of an hour and is logged;
// client-go waits for any duration. Leading reads the clock. There is one kind of lock. The lease is released by
// default; see Options.KeepLease. Coordinated leader election (KEP-4355) is not supported: in it, the API server
// chooses the leader.
package leaderelection
