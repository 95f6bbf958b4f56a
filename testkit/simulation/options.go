package simulation

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testkit"
)

// Change is something that a user, or another controller, does to the server's objects. Random numbers must come from
// r. An error is not a failure: a change that is impossible at the moment returns without an effect.
type Change func(s *Simulation, r *rand.Rand)

// Options describe a simulation. Program, Changes and Converged are required.
type Options struct {
	testkit.Options
	// Prepare creates what the program needs. It runs before the program starts.
	Prepare func(s *Simulation)
	// Program is the program under test. It runs until ctx ends, and may be stopped and started again at any step. If
	// it returns earlier, it starts again after ten seconds.
	Program func(ctx context.Context, s *Simulation) error
	// Changes are the steps that change objects, by their names in the list of steps.
	Changes map[string]Change
	// Converged returns an error if the server's objects are not as the program has to make them.
	Converged func(s *Simulation) error

	// FirstSeed and Seeds select the seeds. Zero means seed 1, and 20 seeds.
	FirstSeed uint64
	Seeds     int
	// Steps is the number of steps of a seed. Zero means 60.
	Steps int
	// Settle is the time that the program has to finish after the faults. Zero means 30 minutes.
	Settle time.Duration
	// Rest is the time after that in which the program may send WritesAtRest writes at most. Zero means one hour; a
	// negative value means that writes are not counted.
	Rest         time.Duration
	WritesAtRest int
	// Resources are searched for objects that nobody finishes deleting.
	Resources []api.Resource
	// Faults are the faults to choose from. Nil means Faults().
	Faults []Fault
}

func (o Options) withDefaults() Options {
	o.FirstSeed = cmp.Or(o.FirstSeed, 1)
	o.Seeds = cmp.Or(o.Seeds, 20)
	o.Steps = cmp.Or(o.Steps, 60)
	o.Settle = cmp.Or(o.Settle, 30*time.Minute)
	o.Rest = cmp.Or(o.Rest, time.Hour)
	if o.Faults == nil {
		o.Faults = Faults()
	}
	return o
}
