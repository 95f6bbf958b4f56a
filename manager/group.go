package manager

import "github.com/leatproject/leat/reconcile/events"

// Group decides when a runnable starts and ends. Groups start in the order of their numbers, each when the previous one
// is ready. They end in reverse order, each when the previous one has ended; WarmUp and Elected end together. It
// corresponds to the groups of runnables of controller-runtime's manager, with numbers instead of interfaces.
type Group int

const (
	// Servers must answer during the whole run, or serve all other runnables: for example health checks and a recorder.
	// The next group starts when every SyncNotifier of this group is synced, that is, when it listens.
	Servers Group = iota + 1
	// Caches are read by the runnables of later groups. The next group starts when every SyncNotifier of this group is
	// synced, that is, when it holds its first list. An informer, a factory or a SyncExplainer tells why it is not
	// synced. An informer that no runnable needs to wait for belongs to Others.
	Caches
	// Others run on every replica.
	Others
	// WarmUp is for controllers and every other WarmUpRunnable. The manager calls RunHeld on every replica, with
	// Manager.Elected, so that the queues are full when a replica becomes the leader. A replica campaigns when every
	// SyncNotifier of the group is synced, or after Options.SyncTimeout. So a controller that waits for a missing kind
	// does not block the others.
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

// groupOf returns the default group of a runnable.
func groupOf(r Runnable) Group {
	switch r := r.(type) {
	case InformerRunnable, FactoryRunnable:
		return Caches
	case ServerRunnable, *events.Recorder:
		return Servers
	case WarmUpRunnable:
		return WarmUp
	case LeaderElectionRunnable:
		if !r.NeedLeaderElection() {
			return Others
		}
	}
	return Elected
}
