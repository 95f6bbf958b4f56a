package archtest_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// requireNone fails with every finding on a line of its own.
func requireNone(t *testing.T, found []finding) {
	t.Helper()
	slices.SortFunc(found, func(a, b finding) int { return cmp.Or(cmp.Compare(a.path, b.path), a.line-b.line) })
	var text strings.Builder
	for _, f := range found {
		text.WriteString("\n" + f.String())
	}
	require.Empty(t, text.String())
}

// repository returns the source of the repository.
func repository(t *testing.T) *source {
	t.Helper()
	return read(t, os.DirFS(root))
}

func TestImports(t *testing.T) { requireNone(t, checkImports(repository(t))) }

func TestExportedSymbolsAreDocumented(t *testing.T) {
	requireNone(t, checkComments(repository(t)))
}

func TestPackageCards(t *testing.T) { requireNone(t, checkCards(repository(t))) }

func TestLandingPage(t *testing.T) { requireNone(t, checkLandingPage(repository(t))) }

func TestMap(t *testing.T) { requireNone(t, checkMap(repository(t))) }

func TestPromises(t *testing.T) { requireNone(t, checkPromiseTable(repository(t))) }

func TestProse(t *testing.T) { requireNone(t, checkProse(t, repository(t))) }

func TestStyle(t *testing.T) { requireNone(t, checkStyle(repository(t))) }

func TestModule(t *testing.T) { requireNone(t, checkModule(t, os.DirFS(root))) }

func TestCoreLinks(t *testing.T) {
	packages := repository(t).packages()
	for _, pkg := range core {
		if _, there := packages[pkg]; there {
			require.Empty(t, forbiddenIn(linked(t, pkg)), "what %s links and must not", pkg)
		}
	}
}

// TestOnlyProgramsLinkThePage keeps the live page out of programs that do not import it.
func TestOnlyProgramsLinkThePage(t *testing.T) {
	for _, pkg := range []string{"program", "metrics", "testkit/simulation"} { // together they link the whole library
		require.NotContains(t, linked(t, pkg), module+"/livepage", pkg)
	}
}

func TestTableIsConsistent(t *testing.T) {
	position := map[string]int{}
	for i, l := range table {
		for _, pkg := range strings.Fields(l.packages) {
			require.NotContains(t, position, pkg, "a package has one row")
			position[pkg] = i
		}
	}
	for i, l := range table {
		for _, pkg := range strings.Fields(l.mayImport) {
			if pkg == everything {
				continue
			}
			require.Contains(t, position, pkg, "what may be imported has a row")
			if !strings.HasPrefix(l.packages, "internal/") {
				require.Less(t, position[pkg], i, "%s imports %s, which stands below it; imports point down", l.packages, pkg)
			}
		}
	}
	for _, pkg := range core {
		require.Contains(t, position, pkg)
	}
}
