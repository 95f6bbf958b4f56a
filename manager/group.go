package manager

import (
	"context"
	"time"

	"github.com/leatproject/leat/recorder"
)

// Group decides when a runnable starts and ends. Groups start in the order of their numbers, each when the previous one
// is ready. They end in reverse order, each when the previous one has ended; WarmUp and Elected end together. It
// corresponds to the groups of runnables of controller-runtime's manager, with numbers instead of interfaces.
type Group int

const (
	// Servers must answer during the whole run, or serve all other runnables: for example health checks and a recorder.
	// The next group starts when every server with a method Synced() <-chan struct{} has closed this channel, that is,
	// when it listens.
	Servers Group = iota + 1
	// Caches are read by the runnables of later groups. The next group starts when every cache with a method Synced()
	// <-chan struct{} has closed this channel, that is, when it holds its first list. An informer, a factory, or a
	// runnable with a method NotSynced() error tells why it is not synced. An informer that no runnable needs to wait
	// for belongs to Others.
	Caches
	// Others run on every replica.
	Others
	// WarmUp is for controllers and other runnables with a method RunHeld(ctx context.Context, release <-chan struct{})
	// error. The manager calls it on every replica, with Manager.Elected, so that the queues are full when a replica
	// becomes the leader. A replica campaigns when every runnable of the group with a method Synced() <-chan struct{}
	// has closed this channel, or after Options.SyncTimeout. So a controller that waits for a missing kind does not
	// block the others.
	WarmUp
	// Elected runs only on the leader.
	Elected

	election // the Elector's Run
)

// String returns the name of the group.
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

// endings lists the groups that end together, in the order of their end.
var endings = [][]Group{{Elected, WarmUp}, {election}, {Others}, {Caches}, {Servers}}

// vital reports whether the other groups need the runnables of this group until the end.
func (g Group) vital() bool { return g == Servers || g == Caches || g == election }

// held is a runnable that prepares itself, and begins the work of the leader when a channel is closed.
type held interface {
	RunHeld(ctx context.Context, release <-chan struct{}) error
}

// bounded is a runnable that still has work to do after its context has ended, as a recorder does. EndBy says when Run
// has to return; the zero time means no limit.
type bounded interface {
	EndBy(t time.Time)
}

var _ bounded = (*recorder.Recorder)(nil)

// groupOf returns the default group of a runnable.
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
