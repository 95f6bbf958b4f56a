package suites_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/e2e/conformance/suites"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	chosen = flag.String("projects", "", "the `names` of the projects whose suites TestProjects runs, or all")
	folder = flag.String("assets", "", "the `folder` of leat-server assets; empty builds leat-server")
	update = flag.Bool("update", false, "write the rows of these projects into docs/envtest.md")
)

// The testdata of kubebuilder are modules of their own, which the proxy lacks, but its module has the script that makes
// them. The targets all and build-installer do not run here, because they lint, build, and need other programs.
const makeTestdata = `
cd "$1"
sed -i -e 's/^  make all$/  make generate manifests/' -e '/^  make build-installer$/d' -e '/^scaffold_test_project/d' \
	test/testdata/generate.sh
echo 'scaffold_test_project %[1]s --plugins=go/v4 %[2]s' >> test/testdata/generate.sh
bash test/testdata/generate.sh >&2
echo "$1/testdata/%[1]s"`

// The projects with requirements of bench/projects have Kubernetes and controller-runtime in its versions.
const with = "../../../bench/projects"

var projects = []suites.Project{
	{
		Name: "project-v4", Module: "sigs.k8s.io/kubebuilder/v4", Version: "v4.16.0", With: with,
		Make: fmt.Sprintf(makeTestdata, "project-v4", ""), Packages: []string{"internal/..."}, Uses: "envtest.Environment{",
	},
	{
		Name: "project-v4-multigroup", Module: "sigs.k8s.io/kubebuilder/v4", Version: "v4.16.0", With: with,
		Make:     fmt.Sprintf(makeTestdata, "project-v4-multigroup", "--multigroup"),
		Packages: []string{"internal/..."}, Uses: "envtest.Environment{",
	},
	{
		// The others are left out because together they take too long. The suite of pkg/controllers/state alone
		// did not end within six minutes with the real programs.
		Name: "karpenter", Module: "sigs.k8s.io/karpenter", Version: "v1.14.1", With: with, Uses: "test.NewEnvironment(",
		Packages: []string{
			"pkg/apis/...", "pkg/controllers/node/termination", "pkg/controllers/nodeclaim/disruption",
			"pkg/controllers/nodeclaim/lifecycle", "pkg/controllers/nodeoverlay",
		},
	},
	{
		Name: "lws", Module: "sigs.k8s.io/lws", Version: "v0.8.0", With: with,
		Packages: []string{"test/integration/controllers"}, Uses: "envtest.Environment{",
	},
	{
		Name: "jobset", Module: "sigs.k8s.io/jobset", Version: "v0.11.1", With: with,
		Packages: []string{"test/integration/controller"}, Uses: "envtest.Environment{",
	},
	{
		// Its webhooks, which its suites start, do not compile with the requirements of bench/projects.
		Name: "training-operator", Module: "github.com/kubeflow/training-operator", Version: "v1.9.3",
		Packages: []string{"pkg/controller.v1/..."}, Uses: "envtest.Environment{",
	},
}

// TestProjects runs the suites of other projects on the real programs and on those of leat-server assets. Each spec
// that passes on the real ones passes on the others, unless testdata/projects.txt has it.
func TestProjects(t *testing.T) {
	if *chosen == "" {
		t.Skip("it compiles large projects: make conformance-projects")
	}
	realPrograms := must.Get(harness.Binaries())(t)
	assets := *folder
	if assets == "" {
		command := exec.Command("go", "run", "./cmd/leat-server", "assets", t.TempDir())
		command.Dir = filepath.Join("..", "..", "..", "testserver", "cluster")
		command.Stderr = os.Stderr
		assets = strings.TrimSpace(string(must.Get(command.Output())(t)))
	}
	expected := suites.ReadFailures(string(must.Get(os.ReadFile("testdata/projects.txt"))(t)))
	names := strings.Fields(*chosen)
	for _, name := range names {
		known := slices.ContainsFunc(projects, func(p suites.Project) bool { return p.Name == name })
		require.True(t, known || name == "all", "no project is named %q; names are separated by spaces", name)
	}
	for _, p := range projects {
		if *chosen != "all" && !slices.Contains(names, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			require.NoError(t, p.Build(t.Context(), t.TempDir()))
			onReal := must.Get(p.Run(t.Context(), realPrograms))(t)
			here := must.Get(p.Run(t.Context(), assets))(t)
			passed, all := onReal.Passed()
			require.Positive(t, passed, "no spec passes with the real programs: %v", onReal.Failed())
			found := onReal.Differences(here)
			if len(found) > 0 {
				t.Logf("with leat-server, these fail: %v", here.Failed())
			}
			for name, message := range found {
				if !expected[p.Name+" "+name] {
					t.Errorf("%s passes with the real programs only:\n%s", name, message)
				}
			}
			for name, message := range here.Differences(onReal) {
				t.Logf("%s passes with leat-server only:\n%s", name, message)
			}
			row := fmt.Sprintf("| %s %s | %d | %d | %d | %s | %s | %d MB | %d MB |", p.Name, p.Version, all, passed, passed-len(found),
				onReal.Took.Round(time.Second), here.Took.Round(time.Second), onReal.Peak>>20, here.Peak>>20)
			t.Log(row)
			if *update {
				writeRow(t, p.Name, row)
			}
		})
	}
}

// writeRow makes the row of a project the last one of the table in docs/envtest.md.
func writeRow(t *testing.T, name, row string) {
	const page = "../../../docs/envtest.md"
	begin, end := "<!-- make conformance-projects writes this part -->\n", "<!-- end -->\n"
	text := string(must.Get(os.ReadFile(page))(t))
	before, rest, found := strings.Cut(text, begin)
	rows, after, ends := strings.Cut(rest, end)
	require.True(t, found && ends, "%s has no table of projects", page)
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(rows)) {
		if !strings.HasPrefix(line, "| "+name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	rows = strings.Join(append(lines, row), "\n")
	require.NoError(t, os.WriteFile(page, []byte(before+begin+"\n"+rows+"\n\n"+end+after), 0o600))
}
