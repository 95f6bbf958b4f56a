package main

import (
	"flag"
	"fmt"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
)

func main() { os.Exit(run(os.Args[1:], ".", os.Stdout, os.Stderr)) }

// run is the command. It returns the exit code.
func run(args []string, dir string, out, failures io.Writer) int {
	flags := flag.NewFlagSet("leat-fields", flag.ContinueOnError)
	flags.SetOutput(failures)
	output := flags.String("o", "", "write the lists to this Go file")
	checked := flags.String("check", "", "compare the lists in this Go file with the program")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	code, err := execute(dir, *output, *checked, flags.Args(), out)
	if err != nil {
		fmt.Fprintln(failures, "leat-fields:", err)
		return 2
	}
	return code
}

func execute(dir, output, checked string, patterns []string, out io.Writer) (int, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if output != "" && checked != "" {
		return 2, fmt.Errorf("-o conflicts with -check")
	}
	var old *generated
	if checked != "" {
		var err error
		if old, err = readGenerated(checked); err != nil {
			return 2, err
		}
	}
	w, err := load(dir, patterns)
	if err != nil {
		return 2, err
	}
	r, err := analyseProgram(w, w.program)
	if err != nil {
		return 2, err
	}
	switch {
	case checked != "":
		lines, code := r.check(checked, old)
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		return code, nil
	case output != "":
		pkg, err := packageName(filepath.Dir(output))
		if err != nil {
			return 2, err
		}
		for _, e := range sortedNotes(r.escapes) {
			fmt.Fprintln(out, "escape:", e.escape())
		}
		for _, e := range sortedNotes(r.writes) {
			fmt.Fprintln(out, "write:", e.write())
		}
		return 0, os.WriteFile(output, r.source(pkg), 0o644)
	}
	fmt.Fprint(out, r.text())
	return 0, nil
}

// analyseProgram finds the fields that some packages of a world read.
func analyseProgram(w *world, program []*packages.Package) (*report, error) {
	r, err := newReport(w)
	if err != nil {
		return nil, err
	}
	var all []*ssa.Function
	for _, p := range program {
		all = append(all, w.prog.Package(p.Types).Func("init"))
		for _, o := range p.TypesInfo.Defs {
			if o, ok := o.(*types.Func); ok {
				if fn := w.prog.FuncValue(o); fn != nil && len(fn.Blocks) > 0 && fn.TypeParams().Len() == 0 {
					all = append(all, fn)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *ssa.Function) int {
		if a.Pos() != b.Pos() {
			return int(a.Pos() - b.Pos())
		}
		return strings.Compare(a.String(), b.String())
	})
	analyse(w, newAPIs(w.all), r, all)
	return r, r.wrong
}
