// Command platformvet checks packages for other platforms, as go vet does with GOOS and GOARCH. It reads all packages
// from their sources. go vet compiles the dependencies first, which takes minutes for each platform with a cold cache.
//
// Usage: platformvet GOOS/GOARCH,GOOS/GOARCH package...
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

// analyzers are those of go vet whose results may depend on the platform. go vet runs all of them for this platform.
var analyzers = []*analysis.Analyzer{
	assign.Analyzer, atomic.Analyzer, bools.Analyzer, copylock.Analyzer, httpresponse.Analyzer, lostcancel.Analyzer,
	nilfunc.Analyzer, printf.Analyzer, shift.Analyzer, unmarshal.Analyzer, unreachable.Analyzer, unsafeptr.Analyzer,
	unusedresult.Analyzer,
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: platformvet GOOS/GOARCH,... package...")
		os.Exit(2)
	}
	failed := false
	for platform := range strings.SplitSeq(os.Args[1], ",") {
		fmt.Println("vet for", platform)
		if err := vet(platform, os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "platformvet: %s: %v\n", platform, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// vet checks the packages and their tests for one platform. It prints what it finds.
func vet(platform string, patterns []string) error {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return errors.New("the platform must be GOOS/GOARCH")
	}
	cfg := &packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		Tests: true,
	}
	found, err := packages.Load(cfg, patterns...)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("no packages")
	}
	if n := packages.PrintErrors(found); n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	graph, err := checker.Analyze(analyzers, found, nil)
	if err != nil {
		return err
	}
	problems := 0
	for action := range graph.All() {
		if !action.IsRoot {
			continue
		}
		if action.Err != nil {
			return action.Err
		}
		for _, d := range action.Diagnostics {
			fmt.Fprintf(os.Stderr, "%s: %s\n", action.Package.Fset.Position(d.Pos), d.Message)
			problems++
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d problems", problems)
	}
	return nil
}
