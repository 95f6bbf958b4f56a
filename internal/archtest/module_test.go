package archtest_test

import (
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

// requirement is a line of go.mod.
type requirement struct {
	module   string
	line     int
	indirect bool
}

var requireLine = regexp.MustCompile(`^(?:require)?\s+([a-z0-9.-]+\.[a-z]+/\S+|[a-z0-9.-]+\.[a-z]+) v\S+(.*)$`)

func requirements(t *testing.T, root fs.FS) []requirement {
	t.Helper()
	content := must.Get(fs.ReadFile(root, "go.mod"))(t)
	var found []requirement
	for i, text := range strings.Split(string(content), "\n") {
		if m := requireLine.FindStringSubmatch(text); m != nil {
			found = append(found, requirement{m[1], i + 1, strings.Contains(m[2], "// indirect")})
		}
	}
	return found
}

var dependencyRow = regexp.MustCompile("^\\| `([^`]+)` \\|(.*)\\|(.*)\\|\\s*$")

// checkModule compares go.mod with the modules that the design forbids, and with docs/dependencies.md.
func checkModule(t *testing.T, root fs.FS) []finding {
	t.Helper()
	document := must.Get(fs.ReadFile(root, "docs/dependencies.md"))(t)
	documented := map[string]int{}
	var found []finding
	for i, text := range strings.Split(string(document), "\n") {
		if m := dependencyRow.FindStringSubmatch(text); m != nil {
			documented[m[1]] = i + 1
			if strings.TrimSpace(m[2]) == "" || strings.TrimSpace(m[3]) == "" {
				found = append(found, finding{"docs/dependencies.md", i + 1, m[1] + " has no user or no reason"})
			}
		}
	}
	direct := map[string]bool{}
	for _, r := range requirements(t, root) {
		if r.module == "k8s.io/client-go" || r.module == "sigs.k8s.io/controller-runtime" {
			found = append(found, finding{"go.mod", r.line, r.module + " is what leat does without"})
		}
		if r.indirect {
			continue
		}
		direct[r.module] = true
		if documented[r.module] == 0 {
			found = append(found, finding{"go.mod", r.line, r.module + " has no row in docs/dependencies.md"})
		}
	}
	for name, line := range documented {
		if !direct[name] {
			found = append(found, finding{"docs/dependencies.md", line, name + " is no direct dependency in go.mod"})
		}
	}
	return found
}

// linked returns the packages that a package links, without tests.
func linked(t *testing.T, pkg string) []string {
	t.Helper()
	var failure strings.Builder
	list := exec.Command("go", "list", "-deps", module+"/"+pkg)
	list.Dir, list.Stderr = root, &failure
	output, err := list.Output()
	require.NoError(t, err, failure.String())
	return strings.Fields(string(output))
}

// forbiddenIn returns the packages that must not be linked.
func forbiddenIn(packages []string) []string {
	var found []string
	for _, pkg := range packages {
		if slices.ContainsFunc(neverLinked, func(m string) bool { return within(pkg, m) }) {
			found = append(found, pkg)
		}
	}
	return found
}
