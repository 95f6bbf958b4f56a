package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Project is a module with suites of Ginkgo, each of which starts a server with envtest.
type Project struct {
	// Name is the name of the project. The module proxy has Module at Version.
	Name, Module, Version string
	// Make is a script of bash that makes the project from a copy of the module, whose folder is the first argument. It
	// prints the folder of the project. Empty means that the module is the project.
	Make string
	// With is the folder of a go.mod whose requirements the project gets in addition to its own, so that several
	// projects are compiled with the same packages of Kubernetes. Empty means that it has its own only.
	With string
	// Packages are patterns of packages below the module. Of these, Run runs those whose tests contain the text Uses.
	Packages []string
	Uses     string

	module string
	suites []built
}

// built is the test binary of a package.
type built struct{ Package, Folder, Binary string }

// Outcome is what the suites of a project do with the programs of one folder.
type Outcome struct {
	results map[string]result
	// Took is how long the suites took, one after the other.
	Took time.Duration
	// Peak is the memory of the servers, in bytes, at the moment when it is largest.
	Peak int64
}

// Build copies the module into scratch and compiles its suites there.
func (p *Project) Build(ctx context.Context, scratch string) error {
	text, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", p.Module+"@"+p.Version).Output()
	if err != nil {
		return fmt.Errorf("suites: go mod download %s@%s: %w\n%s", p.Module, p.Version, withOutput(err), text)
	}
	var cached struct{ Dir string }
	if err := json.Unmarshal(text, &cached); err != nil {
		return fmt.Errorf("suites: go mod download %s: %w", p.Module, err)
	}
	// The cache is read-only, and some suites write files beside their sources.
	folder := filepath.Join(scratch, "module")
	if err := os.CopyFS(folder, os.DirFS(cached.Dir)); err != nil {
		return fmt.Errorf("suites: copy %s: %w", p.Name, err)
	}
	if p.Make != "" {
		command := exec.CommandContext(ctx, "bash", "-euc", p.Make, "bash", folder)
		command.Env, command.Stderr = environment(), os.Stderr
		if text, err = command.Output(); err != nil {
			return fmt.Errorf("suites: make %s: %w", p.Name, err)
		}
		folder = strings.TrimSpace(string(text))
	}
	text, err = os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return fmt.Errorf("suites: %w", err)
	}
	p.module = field(text, "module")
	main, err := p.mainModule(folder, scratch)
	if err != nil {
		return err
	}
	command := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir, command.Env = main, environment()
		return command
	}
	list := []string{"list", "-mod=mod", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}
	for _, pattern := range p.Packages {
		list = append(list, p.module+"/"+pattern)
	}
	text, err = command(list...).Output()
	if err != nil {
		return fmt.Errorf("suites: go list in %s: %w", p.Name, withOutput(err))
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var found struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&found); err != nil {
			return fmt.Errorf("suites: go list in %s: %w", p.Name, err)
		}
		if !contain(found.Dir, append(found.TestGoFiles, found.XTestGoFiles...), p.Uses) {
			continue
		}
		binary := filepath.Join(scratch, fmt.Sprintf("%d.test", len(p.suites)))
		args := []string{"test", "-c", "-mod=mod", "-vet=off", "-ldflags=-s -w", "-o", binary, found.ImportPath}
		if text, err := command(args...).CombinedOutput(); err != nil {
			return fmt.Errorf("suites: compile %s: %w\n%s", found.ImportPath, err, text)
		}
		p.suites = append(p.suites, built{found.ImportPath, found.Dir, binary})
	}
	if len(p.suites) == 0 {
		return fmt.Errorf("suites: no tests of %s contain %q", p.Name, p.Uses)
	}
	return nil
}

// mainModule returns the folder of the main module for the module in folder. That is folder itself, or a new one with
// the requirements of another module too.
func (p *Project) mainModule(folder, scratch string) (string, error) {
	if p.With == "" {
		return folder, nil
	}
	main := filepath.Join(scratch, "main")
	if err := os.Mkdir(main, 0o700); err != nil {
		return "", fmt.Errorf("suites: %w", err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(p.With, name))
		if err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
		// The modules of this repository are found by paths relative to it, and no project needs them.
		text = ours.ReplaceAll(text, nil)
		if err := os.WriteFile(filepath.Join(main, name), text, 0o600); err != nil {
			return "", fmt.Errorf("suites: %w", err)
		}
	}
	edit := exec.Command("go", "mod", "edit", "-module=projects", "-require="+p.module+"@v0.0.0", "-replace="+p.module+"="+folder)
	edit.Dir, edit.Env = main, environment()
	if text, err := edit.CombinedOutput(); err != nil {
		return "", fmt.Errorf("suites: go mod edit: %w\n%s", err, text)
	}
	return main, nil
}

// ours is the line of a module of this repository in a go.mod.
var ours = regexp.MustCompile(`(?m)^.*github\.com/leatproject/leat.*\n`)

// environment is the environment of the go command, which must not look at workspaces of the caller.
func environment() []string { return append(os.Environ(), "GOWORK=off") }

// contain reports whether one of the files contains the text.
func contain(folder string, names []string, text string) bool {
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil && bytes.Contains(source, []byte(text)) {
			return true
		}
	}
	return false
}

// Run runs the suites one after the other with the etcd and the kube-apiserver in the folder assets. A spec that fails
// is an entry of the outcome, and not an error.
func (p *Project) Run(ctx context.Context, assets string) (Outcome, error) {
	out := Outcome{results: map[string]result{}}
	// The managers of most suites serve metrics on this port, and end if it is in use. Each spec then fails after its
	// timeouts, which takes more than an hour for some suites.
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		return out, fmt.Errorf("suites: %s needs the port 8080 for metrics: %w", p.Name, err)
	}
	_ = listener.Close()
	for _, suite := range p.suites {
		report := suite.Binary + ".json"
		_ = os.Remove(report) // of the other servers
		// Some specs wait for a time that is too short on a busy machine, so a spec gets three attempts.
		run := exec.CommandContext(ctx, suite.Binary, "-test.v", "-test.timeout=30m", "-ginkgo.timeout=30m",
			"-ginkgo.no-color", "-ginkgo.seed=1", "-ginkgo.flake-attempts=3", "-ginkgo.json-report="+report)
		run.Dir = suite.Folder
		run.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
		var output bytes.Buffer
		run.Stdout, run.Stderr = &output, &output
		begin := time.Now()
		if err := run.Start(); err != nil {
			return out, fmt.Errorf("suites: %w", err)
		}
		done := make(chan error)
		var runErr error
		go func() { done <- run.Wait() }()
		tick := time.NewTicker(200 * time.Millisecond)
		for running := true; running; {
			select {
			case runErr = <-done:
				running = false
			case <-tick.C:
				out.Peak = max(out.Peak, memory(run.Process.Pid))
			}
		}
		tick.Stop()
		out.Took += time.Since(begin)
		results, err := readReport(report)
		if err != nil {
			return out, fmt.Errorf("%w\n%s", errors.Join(err, ctx.Err()), output.Bytes())
		}
		short := strings.TrimPrefix(suite.Package, p.module+"/")
		failed := false
		for name, r := range results {
			out.results[short+": "+name] = r
			failed = failed || r.Failed
		}
		if runErr != nil && !failed { // a test that is not a spec
			return out, fmt.Errorf("suites: %s: %w\n%s", suite.Package, runErr, output.Bytes())
		}
	}
	return out, nil
}

// memory returns the memory of the servers that a process and its children have started, in bytes. A page that several
// processes use counts once.
func memory(root int) (sum int64) {
	processes, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0
	}
	type process struct {
		name   string
		parent int
	}
	known := map[int]process{}
	for _, path := range processes {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(field(text, "PPid:"))
		known[pid] = process{field(text, "Name:"), parent}
	}
	for pid, p := range known {
		if p.name != "etcd" && p.name != "kube-apiserver" {
			continue
		}
		for above := pid; above > 1; above = known[above].parent {
			if above == root {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
				kilobytes, _ := strconv.ParseInt(field(text, "Pss:"), 10, 64)
				sum += kilobytes << 10
				break
			}
		}
	}
	return sum
}

// field returns the first word after a name at the beginning of a line.
func field(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if rest, found := bytes.CutPrefix(line, []byte(name)); found {
			if words := bytes.Fields(rest); len(words) > 0 {
				return string(words[0])
			}
		}
	}
	return ""
}

// Passed returns how many specs passed, and of how many.
func (o Outcome) Passed() (passed, all int) {
	for _, r := range o.results {
		if !r.Failed {
			passed++
		}
	}
	return passed, len(o.results)
}

// Failed returns the specs that fail, with what they say. One of them may be BeforeSuite, without which no spec runs.
func (o Outcome) Failed() map[string]string {
	out := map[string]string{}
	for name, r := range o.results {
		if r.Failed {
			out[name] = r.Message
		}
	}
	return out
}

// Differences returns the specs that pass in o and not in other, with what they say.
func (o Outcome) Differences(other Outcome) map[string]string {
	out := map[string]string{}
	for name, r := range o.results {
		if there, ran := other.results[name]; !r.Failed && (!ran || there.Failed) {
			out[name] = there.Message
		}
	}
	return out
}
