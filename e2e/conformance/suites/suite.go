package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

// Suite is a suite of Ginkgo that gets its server from envtest. envtest then uses the server that KUBECONFIG names.
type Suite struct {
	// Package has the suite, for example sigs.k8s.io/controller-runtime/pkg/cache. Its module is one that go.mod
	// requires.
	Package string
	// Runner is the test function that runs the specs.
	Runner string
	// Shards are expressions that divide the specs, each of which matches exactly one of them. The shards run at the
	// same time, each with a server of its own, because most specs wait. Empty means that all specs run one after the
	// other. The real server also runs them in this way, because it takes seconds to start.
	Shards []string

	// Edit returns the test file with the given name as it is to be compiled, or nil to leave it out. Nil means that
	// the suite runs as it is. The files belong to the package in the folder Into, which is in the main module and has
	// a file of its own with a package clause. Go compiles them together through an overlay, so nothing is written
	// there.
	Edit func(name string, source []byte) []byte
	Into string
	// EditModule returns a Go file of the module as it is to be compiled; name is its path in the module. Nil means
	// that the module stays as it is. Otherwise the whole module is compiled in a temporary folder, because the go
	// command refuses an overlay of the module cache.
	EditModule func(name string, source []byte) []byte

	// Failures is a file with the names of the specs and tests that fail, each below a comment with the reason.
	Failures string
	// Everywhere says that the specs in Failures also fail with the real server, because the reason is not the server.
	Everywhere bool
}

// result is the result of one spec or test.
type result struct {
	Failed  bool
	Message string
}

// Run compiles and runs the suite. It fails t unless exactly the specs and tests fail that the file Failures lists. The
// real server must pass them all, unless Everywhere is set.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	binary, folder, err := s.compile(t.Context(), t.TempDir())
	require.NoError(t, err)
	shards := s.Shards
	if len(shards) == 0 || harness.IsReal() {
		shards = []string{""}
	}
	all := make([]map[string]result, len(shards))
	errs := make([]error, len(shards))
	var wait sync.WaitGroup
	for i, shard := range shards {
		scratch := t.TempDir()
		wait.Go(func() { all[i], errs[i] = s.runShard(t.Context(), binary, folder, scratch, shard, i == 0) })
	}
	wait.Wait()
	results := map[string]result{}
	for i := range shards {
		require.NoError(t, errs[i], "shard %q", shards[i])
		for name, r := range all[i] {
			_, twice := results[name]
			require.False(t, twice, "%s runs in two shards", name)
			results[name] = r
		}
	}
	s.compare(t, results)
}

func (s Suite) compare(t *testing.T, results map[string]result) {
	t.Helper()
	expected := map[string]bool{}
	if s.Failures != "" && (s.Everywhere || !harness.IsReal()) {
		text, err := os.ReadFile(s.Failures)
		require.NoError(t, err)
		expected = ReadFailures(string(text))
	}
	failed := 0
	for name, r := range results {
		switch {
		case r.Failed && expected[name]:
			failed++
		case r.Failed:
			t.Errorf("%s fails:\n%s", name, r.Message)
		case expected[name]:
			t.Errorf("%s passes: remove it from %s", name, s.Failures)
		}
	}
	for name := range expected {
		if _, ok := results[name]; !ok {
			t.Errorf("%s did not run: remove it from %s", name, s.Failures)
		}
	}
	require.NotEmpty(t, results, "nothing ran")
	t.Logf("%s: %d specs and tests ran, %d fail as expected", s.Package, len(results), failed)
}

// ReadFailures returns the names in a text with one name a line. Empty lines and those that begin with # are comments.
func ReadFailures(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out
}

// compile returns the path of the test binary, and the folder in which it runs.
func (s Suite) compile(ctx context.Context, scratch string) (binary, folder string, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-json=Dir,TestGoFiles,XTestGoFiles,Module", s.Package)
	text, err := list.Output()
	if err != nil {
		return "", "", fmt.Errorf("suites: go list %s: %w", s.Package, withOutput(err))
	}
	var sources struct {
		Dir                       string
		TestGoFiles, XTestGoFiles []string
		Module                    struct{ Path, Dir string }
	}
	if err := json.Unmarshal(text, &sources); err != nil {
		return "", "", fmt.Errorf("suites: go list %s: %w", s.Package, err)
	}
	binary = filepath.Join(scratch, "suite.test")
	args := []string{"test", "-c", "-vet=off", "-o", binary}
	switch {
	case s.EditModule != nil:
		edited := filepath.Join(scratch, "module")
		modfile, err := s.editModule(ctx, sources.Module.Path, sources.Module.Dir, edited, scratch)
		if err != nil {
			return "", "", err
		}
		args = append(args, "-modfile="+modfile, s.Package)
		sources.Dir = filepath.Join(edited, strings.TrimPrefix(sources.Dir, sources.Module.Dir))
	case s.Edit == nil:
		args = append(args, s.Package)
	default:
		overlay, err := s.overlay(sources.Dir, append(sources.TestGoFiles, sources.XTestGoFiles...), scratch)
		if err != nil {
			return "", "", err
		}
		args = append(args, "-overlay="+overlay, s.Into)
	}
	if text, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("suites: compile %s: %w\n%s", s.Package, err, text)
	}
	return binary, sources.Dir, nil
}

// editModule writes the module in the folder from into the folder to, edited, and returns a go.mod file that uses it.
// The module gets the requirements and replacements of the main module.
func (s Suite) editModule(ctx context.Context, path, from, to, scratch string) (modfile string, err error) {
	err = filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below := strings.TrimPrefix(name, from)
		target := filepath.Join(to, below)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".go") {
			source = s.EditModule(filepath.ToSlash(strings.TrimPrefix(below, string(filepath.Separator))), source)
		}
		return os.WriteFile(target, source, 0o600)
	})
	if err != nil {
		return "", fmt.Errorf("suites: edit %s: %w", path, err)
	}
	main, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("suites: go list -m: %w", withOutput(err))
	}
	folder := strings.TrimSpace(string(main))
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
		if err := os.WriteFile(filepath.Join(scratch, file), text, 0o600); err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
	}
	// The folders of other replacements are relative to the main module even in a file of another folder.
	modfile = filepath.Join(scratch, "go.mod")
	edit := exec.CommandContext(ctx, "go", "mod", "edit", "-replace="+path+"="+to, modfile)
	if text, err := edit.CombinedOutput(); err != nil {
		return "", fmt.Errorf("suites: go mod edit: %w\n%s", err, text)
	}
	return modfile, nil
}

// overlay writes the edited files into scratch, and returns the file that tells the go command of them.
func (s Suite) overlay(folder string, names []string, scratch string) (string, error) {
	into, err := filepath.Abs(s.Into)
	if err != nil {
		return "", fmt.Errorf("suites: %w", err)
	}
	replace := map[string]string{}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
		edited := s.Edit(name, source)
		if edited == nil {
			continue
		}
		path := filepath.Join(scratch, name)
		if err := os.WriteFile(path, edited, 0o600); err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
		replace[filepath.Join(into, name)] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("suites: %w", err)
	}
	path := filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// runShard runs the specs that match focus with a new server, and the other tests of the package too if it is the
// first.
func (s Suite) runShard(ctx context.Context, binary, folder, scratch, focus string, first bool) (map[string]result, error) {
	server, stop, err := harness.Start(ctx, harness.Options{Bare: true}, scratch)
	if err != nil {
		return nil, err
	}
	defer stop()
	report := filepath.Join(scratch, "report.json")
	// Some specs cancel a context and expect that the cache has not synchronized before. A server in memory is
	// sometimes faster than they are, so a spec gets three attempts.
	args := []string{
		"-test.v", "-ginkgo.no-color", "-ginkgo.seed=1", "-ginkgo.flake-attempts=3", "-ginkgo.json-report=" + report,
	}
	if focus != "" {
		args = append(args, "-ginkgo.focus="+focus)
	}
	if !first {
		args = append(args, "-test.run=^"+s.Runner+"$")
	}
	run := exec.CommandContext(ctx, binary, args...)
	run.Dir = folder
	run.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+server.Kubeconfig)
	output, runErr := run.CombinedOutput()
	results, err := readReport(report)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	failed := false
	for _, r := range results {
		failed = failed || r.Failed
	}
	for _, match := range testLine.FindAllSubmatch(output, -1) {
		name, fails := string(match[2]), string(match[1]) == "FAIL"
		if name == s.Runner {
			continue // the specs are in the report
		}
		failed = failed || fails
		results[name] = result{Failed: fails, Message: string(output)}
	}
	if runErr != nil && !failed {
		return nil, fmt.Errorf("suites: %s: %w\n%s", s.Package, runErr, output)
	}
	return results, nil
}

// testLine is the line of a test that ended. Those of subtests are indented.
var testLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+)`)

// readReport returns the results in a report of Ginkgo. A name that occurs more than once fails if one of them fails.
// Nodes without a name, such as BeforeSuite, count if they fail.
func readReport(path string) (map[string]result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("suites: no report: %w", err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
			Failure                           struct {
				Message  string
				Location struct {
					FileName   string
					LineNumber int
				}
			}
		}
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, fmt.Errorf("suites: read the report: %w", err)
	}
	results := map[string]result{}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			if spec.LeafNodeText == "" {
				name = spec.LeafNodeType
			}
			switch spec.State {
			case "skipped", "pending":
			case "passed":
				if _, known := results[name]; !known && spec.LeafNodeText != "" {
					results[name] = result{}
				}
			default:
				at := spec.Failure.Location
				results[name] = result{
					Failed: true, Message: fmt.Sprintf("%s:%d: %s", filepath.Base(at.FileName), at.LineNumber, spec.Failure.Message),
				}
			}
		}
	}
	return results, nil
}

// withOutput adds what the command wrote to its standard error.
func withOutput(err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return err
}
