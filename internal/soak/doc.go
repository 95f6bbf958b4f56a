// Package soak is a test that runs the whole of leat for minutes or hours. It checks that live heap, goroutines and
// file descriptors are as many at the end as at the beginning. It is not a load test; bench is.
//
//	make soak                # two minutes, with the race detector
//	make soak SOAKTIME=4h
//	make soak SOAKFLAGS='-soak.seed=7 -soak.log -soak.profile=profiles'
//
// # What runs
//
// A test server listens on a loopback port with TLS; from ten minutes on it also speaks HTTP/2. Two replicas of a
// program (replica_test.go) run beside each other, with all that package program makes, an election and a gate. An
// observer (observer_test.go) lives as long as the soak: informers over HTTP and WebSocket, and a recorder that is kept
// full. Visitors are handlers, shares and informers that come and go there.
//
// # Rounds
//
// A soak is a series of rounds. The first part of a round is unquiet: objects change, the test server has faults,
// reconcilers panic, fail and linger, handlers panic, linger and get stuck, and one replica is restarted or cut off
// from the server. Then the round settles: faults are removed, visitors leave, and the objects get the same state as
// after every other round. Once every object has what its controller owes it, every cache must equal the server.
// Then the soak measures. Because the state is the same after every round, so must the measurements be.
//
// # The verdict
//
// The first quarter of the rounds is the warm-up: histories, tables of strings and pools fill. The median of the
// second quarter is compared with the median of the last one; verdict_test.go has the bounds and the reason for each.
// In the end everything stops, and no goroutine and no descriptor may be left.
//
// The seed decides what happens in which round. Goroutines and the network decide the rest, so a seed that failed
// may pass the next time.
//
// # Promises
//
//  1. A soak fails if heap, goroutines or descriptors grow with the rounds, or if a goroutine or a descriptor is left.
//
// # Concurrency
//
// One goroutine runs the rounds. The parts of leat run on their own.
package soak
