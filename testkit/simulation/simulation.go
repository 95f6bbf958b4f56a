package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

// Simulation is one run of a seed. Changes and checks use its server; the program uses its client and logger.
type Simulation struct {
	*testkit.Kit
	options Options
	stop    func()
	active  []*testserver.Injection

	mu       sync.Mutex // guards the fields below
	problems []string
	ends     int   // how often the program has ended by itself; counted again after the faults
	lastEnd  error // what it returned then
}

// shrinkAttempts bounds the runs that look for a shorter plan.
const shrinkAttempts = 50

// Run runs the seeds one after the other, each as a subtest. It stops at the first seed that fails, shrinks its plan
// and prints it.
func Run(t *testing.T, o Options) {
	t.Helper()
	o = o.withDefaults()
	if o.Program == nil || o.Converged == nil || len(o.Changes) == 0 {
		t.Fatal("simulation: Options need Program, Changes and Converged")
	}
	for seed := o.FirstSeed; seed < o.FirstSeed+uint64(o.Seeds); seed++ {
		steps := o.plan(seed)
		problems := o.run(t, fmt.Sprintf("seed=%d", seed), steps)
		if len(problems) == 0 {
			continue
		}
		shortest := shrink(steps, shrinkAttempts, func(fewer []step) bool {
			found := o.run(t, fmt.Sprintf("seed=%d,steps=%d", seed, len(fewer)), fewer)
			if len(found) > 0 {
				problems = found
			}
			return len(found) > 0
		})
		t.Fatalf("simulation: seed %d fails after these %d of %d steps (FirstSeed: %d, Seeds: 1 runs it alone):\n%s%s",
			seed, len(shortest), len(steps), seed, print(shortest), lines(problems))
	}
}

func lines(problems []string) string {
	out := ""
	for _, p := range problems {
		out += "  " + p + "\n"
	}
	return out
}

// run runs a plan as a subtest and returns what was wrong.
func (o Options) run(t *testing.T, name string, steps []step) (problems []string) {
	t.Helper()
	passed := t.Run(name, func(t *testing.T) {
		testkit.Run(t, o.Options, func(k *testkit.Kit) {
			s := &Simulation{Kit: k, options: o}
			if o.Prepare != nil {
				o.Prepare(s)
			}
			s.start()
			defer func() { s.stop() }()
			for _, step := range steps {
				s.do(step)
			}
			s.finish()
			s.check()
			s.stop()
			problems = s.problems
			for _, p := range problems {
				s.Error("simulation: " + p)
			}
		})
	})
	if !passed && len(problems) == 0 {
		problems = []string{"the subtest failed; see its output"}
	}
	return problems
}

// restartDelay is the time after which a program that ended by itself is started again, as a kubelet does.
const restartDelay = 10 * time.Second

// start starts the program. A program may end by itself, for instance because it could not fill its caches in time.
// Only an error after the end of its context is a problem.
func (s *Simulation) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			err := s.options.Program(ctx, s)
			switch {
			case ctx.Err() == nil:
				s.noteEnd(err)
			case err != nil:
				s.Problem("the program ended with an error: %v", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartDelay):
			}
		}
	}()
	s.stop = func() {
		cancel()
		<-ended
	}
	s.Idle()
}

func (s *Simulation) do(step step) {
	switch step.kind {
	case change:
		s.options.Changes[step.name](s, step.random())
		s.Idle()
	case fault:
		i := slices.IndexFunc(s.options.Faults, func(f Fault) bool { return f.Name == step.name })
		s.active = append(s.active, s.Server.Inject(s.options.Faults[i].Inject(s, step.random())))
		s.Idle()
	case heal:
		s.heal()
	case pass:
		s.Pass(step.pause())
	case restart:
		s.stop()
		s.start()
	}
}

// heal ends all faults.
func (s *Simulation) heal() {
	for _, i := range s.active {
		i.Remove()
	}
	s.active = nil
	s.Idle()
}

// finish ends the faults and gives the program time to do the rest.
func (s *Simulation) finish() {
	s.heal()
	s.mu.Lock()
	s.ends = 0
	s.mu.Unlock()
	s.Pass(s.options.Settle)
}

// noteEnd notes that the program has ended by itself.
func (s *Simulation) noteEnd(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends, s.lastEnd = s.ends+1, err
}

// describeEnds says how often the program has ended without faults, because that is mostly why nothing converges.
func (s *Simulation) describeEnds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == 0 {
		return ""
	}
	return fmt.Sprintf("; the program ended %d times meanwhile, last with the error: %v", s.ends, s.lastEnd)
}

func (s *Simulation) check() {
	s.Helper()
	if err := s.options.Converged(s); err != nil {
		s.Problem("not converged after %s without faults: %v%s", s.options.Settle, err, s.describeEnds())
	}
	for _, r := range s.options.Resources {
		s.checkDeleted(r)
	}
	if s.options.Rest > 0 {
		s.checkRest()
	}
}

// checkDeleted finds objects whose deletion nobody finishes.
func (s *Simulation) checkDeleted(r api.Resource) {
	all, err := s.Server.List(r, "")
	if err != nil {
		s.Problem("list %s: %v", r, err)
		return
	}
	for _, u := range all {
		if u.GetDeletionTimestamp() != nil {
			s.Problem("%s %s/%s was deleted %s ago and is still there, with finalizers %v",
				r, u.GetNamespace(), u.GetName(), s.options.Settle, u.GetFinalizers())
		}
	}
}

// checkRest counts the writes of a program that has nothing to do.
func (s *Simulation) checkRest() {
	s.Server.ForgetRequests()
	s.Pass(s.options.Rest)
	var writes []string
	for _, r := range s.Server.Requests() {
		if slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
			writes = append(writes, r.Verb+" "+r.Path)
		}
	}
	if len(writes) > s.options.WritesAtRest {
		s.Problem("%d writes in %s at rest, at most %d expected: %.10q", len(writes), s.options.Rest, s.options.WritesAtRest, writes)
	}
}

// Problem records a failure of the seed. Unlike an Errorf of T, it is printed with the shortest plan. It may be called
// on any goroutine.
func (s *Simulation) Problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}
