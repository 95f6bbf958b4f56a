// Package simulation runs a program against random changes and random faults, on fake time. It finds what a reconciler
// forgets: a write that is lost in a restart, a deletion that nobody notices, an update that never stops.
//
// # Example
//
//	simulation.Run(t, simulation.Options{
//		Program:   func(ctx context.Context, s *simulation.Simulation) error { return run(ctx, s.Client) },
//		Changes:   map[string]simulation.Change{"create": create, "scale": scale, "delete": remove},
//		Converged: func(s *simulation.Simulation) error { return compare(s.Server) },
//	})
//
// See Example. A seed is a list of steps. Each step is a change of Options.Changes, a fault, a pause, or a restart of
// the program. When the steps are over, the faults end, and the program has Options.Settle to finish. Then the checks
// run:
//
//   - Converged returns nil.
//   - No object is waiting for its deletion.
//   - The program writes at most Options.WritesAtRest times during Options.Rest.
//   - Never were two reconciles of one key running at once (with Reconciler).
//   - No cache went back to an older version of an object (with Handler).
//
// A seed that fails is run again with fewer and fewer steps. The test prints the shortest list that fails, and how to
// run it alone.
//
// # Promises
//
//  1. Equal seeds and options give the same steps, whatever other seeds do. Only the order of goroutines that are ready
//     at the same moment differs.
//  2. A seed that fails leaves the shortest failing list of steps that was found within 50 attempts.
//  3. Every fault that a seed injects ends before the checks.
//
// # Concurrency
//
// Changes and checks run on the goroutine of the test, while every goroutine of the program waits for something.
package simulation
