package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The time that the tests of a mutant may take, compared with those of the code as it is.
const (
	patience     = 4
	leastTimeout = 20 * time.Second
)

// binary is a compiled test of a package with all its mutants.
type binary struct {
	path    string
	dir     string // where it runs
	timeout time.Duration
}

// build compiles the tests of a package with its mutants, in a folder for scratch.
func (s *source) build(mutants []*mutant, scratch string) (*binary, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(path string, content []byte) error {
		to := filepath.Join(scratch, filepath.Base(path))
		overlay.Replace[path] = to
		return os.WriteFile(to, content, 0o600)
	}
	for _, f := range s.files {
		var own []*mutant
		for _, m := range mutants {
			if m.path == f.path {
				own = append(own, m)
			}
		}
		if err := write(f.path, render(f.content, own)); err != nil {
			return nil, err
		}
	}
	if err := write(filepath.Join(s.dir, "mutate_helpers.go"), fmt.Appendf(nil, helpers, s.name)); err != nil {
		return nil, err
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	list := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(list, content, 0o600); err != nil {
		return nil, err
	}
	b := &binary{path: filepath.Join(scratch, "mutants.test"), dir: s.dir}
	compile := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", list, "-o", b.path, s.path)
	if output, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s does not compile with its mutants: %w\n%s", s.path, err, output)
	}
	return b, nil
}

// baseline runs the tests of the code as it is, which must pass, and says how long they take.
func (b *binary) baseline(ctx context.Context, skip string) error {
	began := time.Now()
	b.timeout = 10 * time.Minute
	result, output := b.run(ctx, 0, skip)
	if result != survived {
		return fmt.Errorf("the tests fail without any mutant (%s):\n%s", result, output)
	}
	b.timeout = max(leastTimeout, patience*time.Since(began))
	return nil
}

// result of the tests of a mutant.
type result string

const (
	survived result = "survived"
	killed   result = "killed"
	hung     result = "timed out" // which counts as killed
	stopped  result = "stopped"   // by the end of the context
)

// run runs the tests with one mutant.
func (b *binary) run(ctx context.Context, id int, skip string) (result, []byte) {
	limited, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	args := []string{"-test.failfast", "-test.short", "-test.timeout=0"}
	if skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	test := exec.CommandContext(limited, b.path, args...)
	test.Dir = b.dir
	test.Env = append(os.Environ(), fmt.Sprint("MUTATE=", id))
	test.WaitDelay = time.Second // for processes of the tests that keep their output
	var output bytes.Buffer
	test.Stdout, test.Stderr = &output, &output
	err := test.Run()
	switch {
	case err == nil:
		return survived, nil
	case ctx.Err() != nil:
		return stopped, nil
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return hung, nil
	}
	return killed, []byte(tail(output.String()))
}

// tail is the end of what the tests printed.
func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
