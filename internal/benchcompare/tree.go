package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoBase says that there is nothing to compare with.
var errNoBase = errors.New("no commit to compare with")

// resolve returns the folder of the repository, and the commit that base names.
func resolve(ctx context.Context, folder, base string) (root, commit string, err error) {
	if root, err = output(ctx, folder, "git", "rev-parse", "--show-toplevel"); err != nil {
		return "", "", err
	}
	if base == "" {
		return "", "", fmt.Errorf("%w: set it with make bench-compare BASE=<commit>", errNoBase)
	}
	commit, err = output(ctx, root, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}")
	if err == nil {
		return root, commit, nil
	}
	shallow, err := output(ctx, root, "git", "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", "", err
	}
	if shallow == "true" {
		return "", "", fmt.Errorf("%w: %q is not in this clone, which is shallow (git fetch --unshallow)", errNoBase, base)
	}
	return "", "", fmt.Errorf("%w: %q is not a commit of this repository", errNoBase, base)
}

// benchmarked returns the folders of the packages with benchmarks, relative to the root.
func benchmarked(ctx context.Context, root string, patterns []string) (packages []string, err error) {
	list, err := output(ctx, root, "go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	for folder := range strings.Lines(list) {
		folder = strings.TrimSuffix(folder, "\n")
		files, err := withBenchmarks(folder)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			continue
		}
		relative, err := filepath.Rel(root, folder)
		if err != nil {
			return nil, err
		}
		packages = append(packages, relative)
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package of %s has a benchmark", strings.Join(patterns, " "))
	}
	return packages, nil
}

// withBenchmarks returns the test files of a folder that have benchmarks.
func withBenchmarks(folder string) (files []string, err error) {
	all, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range all {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(content, []byte("\nfunc Benchmark")) {
			files = append(files, file)
		}
	}
	return files, nil
}

// differences names the files with benchmarks that are not the same in both trees.
func differences(ctx context.Context, out io.Writer, root, commit string, packages []string) error {
	for _, p := range packages {
		files, err := withBenchmarks(filepath.Join(root, p))
		if err != nil {
			return err
		}
		changed, err := output(ctx, root, "git", append([]string{"diff", "--name-only", commit, "--"}, files...)...)
		if err != nil {
			return err
		}
		for file := range strings.Lines(changed) {
			fmt.Fprintf(out, "%s is not as in base\n", strings.TrimSuffix(file, "\n"))
		}
	}
	return nil
}

// tree is one of the two compared trees.
type tree struct {
	name     string
	root     string
	results  string            // a file for the output of benchmarks
	binaries map[string]string // by package
}

// compile compiles the tests of a package.
func (t *tree) compile(ctx context.Context, p, file string) error {
	if _, err := output(ctx, t.root, "go", "test", "-c", "-o", file, "./"+filepath.ToSlash(p)); err != nil {
		return fmt.Errorf("%s of %s: %w", p, t.name, err)
	}
	if _, err := os.Stat(file); err != nil {
		return nil // it has no tests
	}
	if t.binaries == nil {
		t.binaries = map[string]string{}
	}
	t.binaries[p] = file
	return nil
}

// run runs the benchmarks of a package once, and adds their figures to the results. A tree may lack the package.
func (t *tree) run(ctx context.Context, p, bench, time string) error {
	results, err := os.OpenFile(t.results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer results.Close()
	binary, has := t.binaries[p]
	if !has {
		return nil
	}
	figures, err := output(ctx, filepath.Join(t.root, p), binary, "-test.run=^$", "-test.benchmem", "-test.bench="+bench, "-test.benchtime="+time)
	if err != nil {
		return fmt.Errorf("the benchmarks of %s in %s: %w", p, t.name, err)
	}
	_, err = fmt.Fprintln(results, figures)
	return err
}

// output runs a command, and returns what it prints without the line break at the end. The error has what it prints as
// an error, or all that it prints.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	var out, failure bytes.Buffer
	c.Stdout, c.Stderr = &out, &failure
	if err := c.Run(); err != nil {
		why := bytes.TrimSpace(failure.Bytes())
		if len(why) == 0 {
			why = bytes.TrimSpace(out.Bytes())
		}
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, why)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
