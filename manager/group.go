package manager

import (
	"context"

	"github.com/leatproject/leat/recorder"
)

// Group is when a runnable starts and ends. Groups start in the order of their numbers, each once the one before is
// ready, and end in the opposite order, each once the one before has ended; WarmUp and Elected end as one.
// It corresponds to the groups of runnables of controller-runtime's manager, with numbers instead of interfaces.
type Group int

const (
	// Servers are what has to answer throughout, and what all others may call: health checks above all, a recorder.
	// Others start when each that has a method Synced() <-chan struct{} has closed that: when it listens.
	Servers Group = iota + 1
	// Caches are read by what starts after them, which does when each that has a method Synced() <-chan struct{} has
	// closed that: when it holds its first list. Why it does not is asked of an informer, a factory, and whatever else has a
	// method NotSynced() error. An informer that nothing is to wait for belongs to Others.
	Caches
	// Others run on every replica.
	Others
	// WarmUp is for controllers, and whatever else has a method RunHeld(ctx context.Context, release <-chan struct{}) error:
	// that is called with Manager.Elected, on every replica, so that queues are full when a replica becomes the leader. A
	// replica campaigns when each that has a method Synced() <-chan struct{} has closed that, or after
	// Options.SyncTimeout: one that waits for a kind that is not there yet must not keep the others from work.
	WarmUp
	// Elected runs on the leader alone.
	Elected

	election // the Elector's Run
)

// String is the group's name.
func (g Group) String() string {
	switch g {
	case Servers:
		return "servers"
	case Caches:
		return "caches"
	case Others:
		return "others"
	case WarmUp:
		return "warm-up"
	case Elected:
		return "elected"
	case election:
		return "election"
	}
	return "unknown"
}

// endings is who ends at once, in this order.
var endings = [][]Group{{Elected, WarmUp}, {election}, {Others}, {Caches}, {Servers}}

// vital tells whether others cannot go on without a runnable of the group.
func (g Group) vital() bool { return g == Servers || g == Caches || g == election }

// held is a runnable that prepares itself, and waits for a channel to be closed before it does what only the leader may.
type held interface {
	RunHeld(ctx context.Context, release <-chan struct{}) error
}

// groupOf says where a runnable belongs whose user does not.
func groupOf(r Runnable) Group {
	switch r.(type) {
	case cached, sharing:
		return Caches
	case *Server, *recorder.Recorder:
		return Servers
	case held:
		return WarmUp
	}
	return Elected
}
