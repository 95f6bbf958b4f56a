package docs_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

var rewrite = flag.Bool("rewrite", false, "write the generated table of verification.md")

// testFiles returns the text of all files of tests below folders of the repository, in every module.
func testFiles(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "_test.go") {
				all.Write(must.Get(os.ReadFile(path))(t))
			}
			return err
		}))
	}
	return all.String()
}

// TestThePageCountsTheMethods compares the first table of verification.md with what the repository contains.
func TestThePageCountsTheMethods(t *testing.T) {
	const path, begin, end = "verification.md", "<!-- methods -->\n", "<!-- end of methods -->\n"
	all := testFiles(t, ".")
	matches := func(text, pattern string) int { return len(regexp.MustCompile(`(?m)`+pattern).FindAllString(text, -1)) }
	files := func(pattern string) int { return len(must.Get(filepath.Glob(pattern))(t)) }
	read := func(path string) string { return string(must.Get(os.ReadFile(path))(t)) }

	rows := "| method | how much | what it covers | command |\n|---|---|---|---|\n"
	row := func(method, amount, covers, command string) {
		rows += fmt.Sprintf("| %s | %s | %s | `%s` |\n", method, amount, covers, command)
	}
	count := func(n int, of string) string { return fmt.Sprintf("%d %s", n, of) }
	row("unit tests", fmt.Sprintf("more than %d tests", matches(all, `^func Test`)/500*500), "each package by itself, in fake time, with and without the race detector", "make test-all test-race")
	row("models", count(matches(all, `^func Test\w*Model\(`), "plain models"), "a data structure and a simple copy of it get the same calls", "go test -run Model ./...")
	row("a specification", count(matches(read("model/informer.qnt"), `^  action \w+\(`), "actions with parameters"),
		"[informer.qnt](model/informer.qnt): list, watch, relist, queue, cache and handlers; every transcript is a run of it", "make model")
	row("fuzzing", count(matches(all, `^func Fuzz`), "targets"), "everything that reads input of others", "make fuzz")
	row("transcripts", count(files("../informer/testdata/*.txt"), "transcripts"), "what each stage does in a situation, line by line", "go test -run TestTranscripts ./informer")
	row("simulation", count(matches(all, `^func TestSimulation\(`), "programs, ")+count(matches(read("../testkit/simulation/faults.go"), `(?m)^\t\t\{"`), "kinds of faults"),
		"random changes, faults and restarts; the failure is shrunk", "go test -run TestSimulation ./...")
	row("exploration", count(matches(all, `^func TestExplore\(`), "packages with worlds"),
		"every order of steps up to a bound, see [exploration.md](exploration.md)", "make explore")
	row("mutation", "one package a run", "changes of a line that no test notices", "make mutate PACKAGE=./deltafifo")
	row("end to end, under faults", count(matches(testFiles(t, "e2e"), `^func Test`), "tests"), "a real etcd and kube-apiserver, killed, compacted and restored; the test server compared with it", "make e2e")
	row("soak", "two minutes in CI, hours by hand", "churn, faults and restarts; memory, goroutines and descriptors stay flat", "make soak SOAKTIME=4h")
	row("suites of other projects", count(files("../e2e/conformance/*/*_test.go"), "files of tests"), "client-go, controller-runtime, kube-controller-manager, Helm, clients of three other languages, and envtest's users on leat", "make conformance-all conformance-projects")
	row("patterns of Sieve", count(matches(read("../testkit/patterncases_test.go"), `^\t\tkind: `), "patterns"), "mistakes of controllers, below", "go test -run TestPatterns ./testkit")

	text := read(path)
	before, rest, ok := strings.Cut(text, begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	page := before + begin + rows + end + after
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		return
	}
	require.Equal(t, page, text, "go test ./docs -run TestThePageCountsTheMethods -rewrite")
}

// TestFindingsCanBeRepeated looks for each test and each target that verification.md names.
func TestFindingsCanBeRepeated(t *testing.T) {
	page := must.Get(os.ReadFile("verification.md"))(t)
	makefile := string(must.Get(os.ReadFile("../Makefile"))(t))
	all, found := testFiles(t, "."), 0
	for _, m := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(string(page), -1) {
		require.True(t, strings.Contains(all, "\nfunc "+m+"("), m)
		found++
	}
	for _, m := range regexp.MustCompile("`make ([a-z0-9 -]+)").FindAllStringSubmatch(string(page), -1) {
		for target := range strings.FieldsSeq(m[1]) {
			require.True(t, strings.Contains(makefile, "\n"+target+":"), target)
			found++
		}
	}
	require.Greater(t, found, 20)
}
