package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"time"
)

// options are the program's flags.
type options struct {
	sample  int
	seed    uint64
	jobs    int
	limit   time.Duration
	only    string
	skip    string
	list    bool
	verbose bool
}

// errSurvivors says that the tests, or the list of survivors, have to be mended.
var errSurvivors = errors.New("there are survivors that are not in internal/mutate/survivors.txt, or entries that are out of date")

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 0, "run so many mutants of each package, picked by -seed; 0 runs all")
	flag.Uint64Var(&o.seed, "seed", 1, "picks the sample")
	flag.IntVar(&o.jobs, "jobs", 1, "run the tests of so many mutants at the same time")
	flag.DurationVar(&o.limit, "for", 0, "start no mutant of a package after so long; 0 has no limit")
	flag.StringVar(&o.only, "only", "", "run only the mutants whose names match this regular expression")
	flag.StringVar(&o.skip, "skip", "", "do not run the tests that match this regular expression")
	flag.BoolVar(&o.list, "list", false, "print the mutants and run none")
	flag.BoolVar(&o.verbose, "v", false, "print what killed each mutant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run goes through the packages that the patterns name.
func (o options) run(ctx context.Context, patterns []string) error {
	reasons, err := parseSurvivors(survivorsText)
	if err != nil {
		return err
	}
	if _, err := regexp.Compile(o.only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var failed error
	for _, pattern := range patterns {
		sources, err := load(pattern)
		if err != nil {
			return err
		}
		for _, s := range sources {
			switch err := o.examine(ctx, s, reasons); {
			case errors.Is(err, errSurvivors):
				failed = err
			case err != nil:
				return err
			}
		}
	}
	return failed
}

// examine runs the mutants of one package.
func (o options) examine(ctx context.Context, s *source, reasons map[string]string) error {
	mutants := s.mutants()
	if o.list {
		for _, m := range mutants {
			fmt.Println(m.name)
		}
		return nil
	}
	old := outdated(reasons, s.name, mutants)
	for _, name := range old {
		fmt.Println("out of date:", name)
	}
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b, err := s.build(mutants, scratch)
	if err != nil {
		return err
	}
	if err := b.baseline(ctx, o.skip); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	t := &tally{pkg: s.name, of: len(mutants), reasons: reasons, verbose: o.verbose, began: time.Now()}
	o.try(ctx, b, o.pick(mutants), t)
	t.print()
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(old) > 0 || t.unlisted > 0 {
		return errSurvivors
	}
	return nil
}

// pick returns the mutants that -only names, or a sample of them, in the order of the code.
func (o options) pick(mutants []*mutant) []*mutant {
	named := regexp.MustCompile(o.only)
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return !named.MatchString(m.name) })
	if o.sample <= 0 || o.sample >= len(mutants) {
		return mutants
	}
	picked := make([]*mutant, 0, o.sample)
	for _, i := range rand.New(rand.NewPCG(o.seed, 0)).Perm(len(mutants))[:o.sample] {
		picked = append(picked, mutants[i])
	}
	slices.SortFunc(picked, func(a, b *mutant) int { return a.id - b.id })
	return picked
}

// try runs the tests on each mutant.
func (o options) try(ctx context.Context, b *binary, mutants []*mutant, t *tally) {
	next := make(chan *mutant)
	var workers sync.WaitGroup
	for range max(1, o.jobs) {
		workers.Go(func() {
			for m := range next {
				result, output := b.run(ctx, m.id, o.skip)
				t.note(m, result, output)
			}
		})
	}
	for _, m := range mutants {
		if ctx.Err() != nil || o.limit > 0 && time.Since(t.began) > o.limit {
			break
		}
		next <- m
	}
	close(next)
	workers.Wait()
}
