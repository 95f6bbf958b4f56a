package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// step is one step of a plan. Its own seed makes it independent of the steps before it, so that a plan without some of
// its steps does the same in the others.
type step struct {
	kind stepKind
	name string // of a change or a fault
	seed uint64
}

type stepKind int

const (
	change stepKind = iota
	fault
	heal
	pass
	restart
)

func (s step) String() string {
	switch s.kind {
	case change:
		return s.name
	case fault:
		return "fault: " + s.name
	case heal:
		return "end faults"
	case restart:
		return "restart the program"
	}
	return "wait " + s.pause().String()
}

func (s step) random() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 0)) }

// pause returns the time of a step that waits: mostly short, sometimes longer than every back-off.
func (s step) pause() time.Duration {
	return []time.Duration{
		time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute, 10 * time.Minute,
	}[s.random().IntN(6)]
}

// plan returns the steps of a seed.
func (o Options) plan(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 1))
	changes := slices.Sorted(maps.Keys(o.Changes))
	steps := make([]step, o.Steps)
	for i := range steps {
		s := &steps[i]
		s.seed = r.Uint64()
		switch n := r.IntN(100); {
		case n < 45:
			s.kind, s.name = change, changes[r.IntN(len(changes))]
		case n < 65 && len(o.Faults) > 0:
			s.kind, s.name = fault, o.Faults[r.IntN(len(o.Faults))].Name
		case n < 70:
			s.kind = heal
		case n < 75:
			s.kind = restart
		default:
			s.kind = pass
		}
	}
	return steps
}

// print writes a plan as a list.
func print(steps []step) string {
	var out strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&out, "%4d  %s\n", i+1, s)
	}
	return out.String()
}

// shrink returns the shortest part of a plan that fails, as far as it finds one in a number of attempts. It removes
// halves, then quarters, and so on down to single steps.
func shrink(steps []step, attempts int, fails func([]step) bool) []step {
	for size := (len(steps) + 1) / 2; size > 0; {
		removed := false
		for from := 0; from < len(steps) && attempts > 0; {
			fewer := slices.Delete(slices.Clone(steps), from, min(from+size, len(steps)))
			attempts--
			if fails(fewer) {
				steps, removed = fewer, true
				continue
			}
			from += size
		}
		if size == 1 && !removed || attempts == 0 {
			return steps
		}
		if size > 1 || !removed {
			size = max(size/2, 1)
		}
	}
	return steps
}
