package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
)

// options are the program's flags.
type options struct {
	base     string
	bench    string
	time     string
	rounds   int
	allocs   bool
	optional bool
}

func main() {
	var o options
	flag.StringVar(&o.base, "base", "", "the commit to compare with")
	flag.StringVar(&o.bench, "bench", ".", "regular expression of the benchmarks to run")
	flag.StringVar(&o.time, "time", "300ms", "how long, or how often (200x), each benchmark runs in a round")
	flag.IntVar(&o.rounds, "rounds", 6, "how often each benchmark runs in each tree; benchstat needs four for a significant result")
	flag.BoolVar(&o.allocs, "allocs", false, "print only allocations and bytes")
	flag.BoolVar(&o.optional, "optional", false, "if there is no such commit, say so and succeed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx, os.Stdout, ".", flag.Args())
	stop()
	switch {
	case err == nil:
	case o.optional && errors.Is(err, errNoBase):
		fmt.Printf("benchcompare: %v; nothing is compared\n", err)
	default:
		fmt.Fprintln(os.Stderr, "benchcompare:", err)
		os.Exit(1)
	}
}

// run compares the packages of the repository that contains folder.
func (o options) run(ctx context.Context, out io.Writer, folder string, patterns []string) (err error) {
	root, commit, err := resolve(ctx, folder, o.base)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "benchcompare")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	checkout := filepath.Join(scratch, "tree")
	if _, err := output(ctx, root, "git", "worktree", "add", "--quiet", "--detach", checkout, commit); err != nil {
		return err
	}
	defer func() { // also after an interrupt
		_, failed := output(context.WithoutCancel(ctx), root, "git", "worktree", "remove", "--force", checkout)
		err = errors.Join(err, failed)
	}()
	trees := []*tree{{name: "base", root: checkout}, {name: "now", root: root}}
	for _, t := range trees {
		t.results = filepath.Join(scratch, t.name+".txt")
	}
	packages, err := benchmarked(ctx, root, patterns)
	if err != nil {
		return err
	}
	if err := o.compile(ctx, out, trees, packages, scratch); err != nil {
		return err
	}
	if err := differences(ctx, out, root, commit, packages); err != nil {
		return err
	}
	if err := o.measure(ctx, trees, packages); err != nil {
		return err
	}
	return o.report(ctx, out, root, trees)
}

// compile compiles the tests of all packages in both trees.
func (o options) compile(ctx context.Context, out io.Writer, trees []*tree, packages []string, scratch string) error {
	for _, t := range trees {
		for _, p := range packages {
			if _, err := os.Stat(filepath.Join(t.root, p)); err != nil {
				fmt.Fprintf(out, "%s is not in %s\n", p, t.name)
				continue
			}
			file := filepath.Join(scratch, t.name+strconv.Itoa(len(t.binaries))+".test")
			if err := t.compile(ctx, p, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs the packages by turns. Each round begins with the other tree.
func (o options) measure(ctx context.Context, trees []*tree, packages []string) error {
	for round := range o.rounds {
		for _, p := range packages {
			for i := range trees {
				if err := trees[(i+round)%len(trees)].run(ctx, p, o.bench, o.time); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// report prints what benchstat says.
func (o options) report(ctx context.Context, out io.Writer, root string, trees []*tree) error {
	args := []string{"tool", "-modfile=tools/go.mod", "benchstat"}
	if o.allocs {
		args = append(args, "-filter", ".unit:(B/op OR allocs/op)")
	}
	for _, t := range trees {
		args = append(args, t.name+"="+t.results)
	}
	text, err := output(ctx, root, "go", args...)
	fmt.Fprintln(out, text)
	return err
}
