package simulation

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/testserver/faults"
)

// Fault is a failure to choose from.
type Fault struct {
	Name string
	// Inject returns the fault. The next steps and the end of the simulation remove it.
	Inject func(s *Simulation, r *rand.Rand) faults.Fault
}

// Faults returns the faults that every program has to survive. An event that is lost or overtaken by a later one is not
// among them: no API server does that, and no informer can notice it.
func Faults() []Fault {
	return []Fault{
		{"conflict", on(faults.Fail{Code: 409}, 3, "update", "patch")},
		{"error on write", on(faults.Fail{Code: 500}, 3, "create", "update", "patch", "delete")},
		{"error on read", on(faults.Fail{Code: 500}, 3, "get", "list", "watch")},
		{"too many requests", on(faults.Fail{Code: 429, RetryAfter: 2 * time.Second}, 3)},
		{"reset", on(faults.Reset{}, 3)},
		{"lost answer", on(faults.Cut{After: 1, Abrupt: true}, 2, "create", "update", "patch", "delete")},
		{"slow answers", on(faults.Delay{For: 20 * time.Second}, 5)},
		{"end watches", on(faults.Disconnect{}, 0)},
		{"expire versions", on(faults.Compact{}, 0)},
		{"repeat events", frames(faults.Duplicate{})},
		{"stall events", frames(faults.StallEvents{})},
		{"stale reads", func(s *Simulation, _ *rand.Rand) faults.Fault {
			return faults.Fault{Effect: faults.Stale{At: s.Server.Snapshot()}}
		}},
		{"outage", on(faults.Outage{}, 0)},
	}
}

// on affects up to n requests with one of the verbs, or all that come while the fault is active if n is zero.
func on(e faults.Effect, n int, verbs ...string) func(*Simulation, *rand.Rand) faults.Fault {
	return func(_ *Simulation, r *rand.Rand) faults.Fault {
		f := faults.Fault{Effect: e, Match: faults.Match{Verbs: verbs}}
		if n > 0 {
			f.Times = 1 + r.IntN(n)
		}
		return f
	}
}

// frames affects some events of watches.
func frames(e faults.Effect) func(*Simulation, *rand.Rand) faults.Fault {
	return func(_ *Simulation, r *rand.Rand) faults.Fault {
		return faults.Fault{
			Effect: e, Times: 1 + r.IntN(3),
			Match: faults.Match{Frames: []watch.EventType{watch.Added, watch.Modified, watch.Deleted}},
		}
	}
}
