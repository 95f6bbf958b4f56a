package simulation_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/leatproject/leat/testkit/simulation"
)

// A test of a controller needs its program, what users do, and what must be true in the end.
func Example() {
	_ = func(t *testing.T) {
		simulation.Run(t, simulation.Options{
			Program: func(ctx context.Context, s *simulation.Simulation) error {
				return run(ctx, s) // main without flags: creates informers and controllers for s.Client, and runs them
			},
			Changes: map[string]simulation.Change{
				"create": func(s *simulation.Simulation, r *rand.Rand) { /* testkit.Create(s.Kit, …) */ },
				"delete": func(s *simulation.Simulation, r *rand.Rand) { /* testkit.Delete(s.Kit, …) */ },
			},
			Converged: func(s *simulation.Simulation) error {
				return nil // an error names an object that is not as it has to be
			},
		})
	}
	// Output:
}

func run(context.Context, *simulation.Simulation) error { return nil }
