// Command bench measures leat and its peers, prints which targets are met, and writes docs/benchmarks.md with its
// charts and its rows.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/leatproject/leat/bench/report"
	"github.com/leatproject/leat/bench/runner"
)

// errMissed ends a quick run that missed a target which does not depend on the machine.
var errMissed = errors.New("bench: missed a target that does not depend on the machine")

// options are the options of the runner, and what to write.
type options struct {
	runner.Options
	docs    string // a folder; empty writes no page
	results string // a file; empty means that the figures are not stored
	again   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func parse() (options, error) {
	o := options{Options: runner.Options{Folder: ".", Binaries: "bin", Progress: os.Stderr}}
	only := ""
	flag.BoolVar(&o.Quick, "quick", false, "measure the core rows with fewer objects; fail if a target that does not depend on the machine is missed")
	flag.StringVar(&only, "only", "", "regular expression of the rows to measure")
	flag.IntVar(&o.Rounds, "rounds", 0, "rounds of each row; 0 means the row's own number")
	flag.StringVar(&o.Profiles, "profiles", "", "folder for processor and heap profiles of the last round")
	flag.StringVar(&o.Real, "real", "", "folder with etcd and kube-apiserver; measures only the rows that need them")
	flag.StringVar(&o.docs, "docs", "", "folder for benchmarks.md, its charts and its figures")
	flag.StringVar(&o.results, "results", "", "file for the figures, as JSON")
	flag.BoolVar(&o.again, "again", false, "do not measure; write the page from the stored figures")
	flag.Parse()
	if only != "" {
		var err error
		if o.Only, err = regexp.Compile(only); err != nil {
			return o, err
		}
	}
	if o.results == "" && o.docs != "" {
		o.results = filepath.Join(o.docs, "benchmarks", "results.json")
	}
	for _, folder := range []*string{&o.Folder, &o.Binaries, &o.Profiles} {
		if *folder == "" {
			continue
		}
		var err error
		if *folder, err = filepath.Abs(*folder); err != nil {
			return o, err
		}
		if err := os.MkdirAll(*folder, 0o755); err != nil {
			return o, err
		}
	}
	return o, nil
}

func run(ctx context.Context) error {
	o, err := parse()
	if err != nil {
		return err
	}
	targets, err := report.ReadTargets(filepath.Join(o.Folder, "targets.json"))
	if err != nil {
		return err
	}
	result, err := o.result(ctx)
	if err != nil {
		return err
	}
	result = o.joined(result)
	verdicts := report.Judge(targets, result)
	if err := o.write(result, verdicts); err != nil {
		return err
	}
	if err := report.Verdicts(os.Stdout, verdicts); err != nil {
		return err
	}
	if missed := report.Missed(verdicts, false); o.Quick && missed > 0 {
		return fmt.Errorf("%w (%d of them)", errMissed, missed)
	}
	return nil
}

// result measures, or reads the results of an earlier run.
func (o *options) result(ctx context.Context) (*runner.Result, error) {
	if o.again {
		return o.read()
	}
	o.OnRow = o.save
	return runner.Run(ctx, o.Options)
}

// save writes the results so far to a temporary file beside the results of earlier runs. A complete run replaces those.
func (o *options) save(result *runner.Result) error {
	if o.results == "" {
		return nil
	}
	return writeJSON(o.part(), result)
}

// joined puts the measured rows into the results of earlier runs, if only some rows were measured. All figures of a row
// come from one run.
func (o *options) joined(result *runner.Result) *runner.Result {
	if o.Only == nil && o.Real == "" || o.again {
		return result
	}
	earlier, err := o.read()
	if err != nil {
		return result // there are no earlier results
	}
	earlier.Join(result)
	return earlier
}

func (o *options) read() (*runner.Result, error) {
	content, err := os.ReadFile(o.results)
	if err != nil {
		return nil, err
	}
	result := &runner.Result{}
	return result, json.Unmarshal(content, result)
}

func (o *options) part() string { return filepath.Join(o.Binaries, "results.json.part") }

// write writes the figures, and the page if there is a folder for it.
func (o *options) write(result *runner.Result, verdicts []report.Verdict) error {
	if o.results != "" {
		if err := writeJSON(o.results, result); err != nil {
			return err
		}
		if err := os.Remove(o.part()); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	files := map[string][]byte{}
	if o.docs != "" {
		charts := report.Charts(result)
		for name, content := range charts {
			files[filepath.Join(o.docs, "benchmarks", name+".svg")] = []byte(content)
		}
		fields, err := report.Fields()
		if err != nil {
			return err
		}
		files[filepath.Join(o.docs, "fields.svg")] = []byte(fields)
		files[filepath.Join(o.docs, "scale.md")] = []byte(report.Scale(result))
		files[filepath.Join(o.docs, "benchmarks", "rows.md")] = []byte(report.Rows(result))
		files[filepath.Join(o.docs, "benchmarks.md")] = []byte(report.Markdown(result, verdicts, report.ChartNames(charts)))
	}
	for name, content := range files {
		if err := writeFile(name, content); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(name string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(name, append(content, '\n'))
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
