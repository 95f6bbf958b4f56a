package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/faults"
)

// kind is a kind of fault.
type kind struct {
	name string
	// lies says that a client cannot notice it: only a new list shows what it hid.
	lies bool
	make func(*rand.Rand) faults.Fault
}

// reads confines a fault to reads. An answer that is wrong would make a writer believe that it had written.
var reads = faults.Match{Verbs: []string{"get", "list", "watch"}}

var kinds = []kind{
	{"refused answer", false, func(r *rand.Rand) faults.Fault {
		code := []int{500, 503, 504, 429, 403, 401, 404, 502}[r.IntN(8)]
		return faults.Fault{Match: reads, Times: 1 + r.IntN(4), Effect: faults.Fail{Code: code, RetryAfter: time.Duration(r.IntN(2)) * time.Second}}
	}},
	{"busy server", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(4), Effect: faults.Fail{Code: 429, RetryAfter: time.Second}}
	}},
	{"garbage", false, func(*rand.Rand) faults.Fault {
		return faults.Fault{Match: reads, Times: 2, Effect: faults.Fail{Code: 200, Body: []byte(`{"kind":"MillList","items":[{`)}}
	}},
	{"delay", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 3, Effect: faults.Delay{For: time.Duration(r.IntN(500)) * time.Millisecond}}
	}},
	{"stalled answer", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.Stall{After: r.IntN(3000)}}
	}},
	{"reset", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(3), Effect: faults.Reset{}}
	}},
	{"cut answer", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(3), Effect: faults.Cut{After: r.IntN(5000), Abrupt: r.IntN(2) == 0}}
	}},
	{"cut event", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.CutFrame{At: r.IntN(200), Abrupt: r.IntN(2) == 0}}
	}},
	{"short watch", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 4, Effect: faults.ShortWatch{For: time.Duration(r.IntN(300)) * time.Millisecond, Abrupt: r.IntN(2) == 0}}
	}},
	{"expired watch", false, func(*rand.Rand) faults.Fault {
		return faults.Fault{Times: 2, Effect: faults.EndWatch{Error: &metav1.Status{
			Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
		}}}
	}},
	{"no streaming", false, func(*rand.Rand) faults.Fault { return faults.Fault{Effect: faults.RefuseWatchList{}} }},
	{"event twice", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(9), Effect: faults.Duplicate{}}
	}},
	{"silent watch", false, func(*rand.Rand) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.StallEvents{}}
	}},
	{"disconnect", false, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Effect: faults.Disconnect{Abrupt: r.IntN(2) == 0}}
	}},
	{"compaction", false, func(*rand.Rand) faults.Fault { return faults.Fault{Effect: faults.Compact{}} }},
	{"lost event", true, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(3), Effect: faults.Drop{}}
	}},
	{"late event", true, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Times: 1 + r.IntN(3), Effect: faults.Hold{Frames: r.IntN(4)}}
	}},
	{"malformed object", true, func(r *rand.Rand) faults.Fault {
		return faults.Fault{Match: reads, Times: 1 + r.IntN(5), Effect: faults.Malform{}}
	}},
}

// outage is a fault that ends by itself.
const outage = "outage"

// tally counts by name.
type tally map[string]int

func (t tally) add(other tally) {
	for name, n := range other {
		t[name] += n
	}
}

func (t tally) total() (n int) {
	for _, count := range t {
		n += count
	}
	return n
}

// String is "cut answer 2, reset 5", in the order of names.
func (t tally) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name] > 0 {
			all = append(all, fmt.Sprintf("%s %d", name, t[name]))
		}
	}
	return strings.Join(all, ", ")
}
