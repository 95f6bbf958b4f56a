package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository makes a repository with two commits. Work allocates once in the first, and twice in the second.
func repository(t *testing.T) (root string) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	git := func(args ...string) {
		_, err := output(t.Context(), root, "git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
		require.NoError(t, err)
	}
	write := func(file, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o600))
	}
	const bench = "package work\n\nimport \"testing\"\n\nfunc BenchmarkWork(b *testing.B) {\n\tfor b.Loop() {\n\t\tWork()\n\t}\n}\n"
	const work = "package work\n\nvar Kept []*int\n\nfunc Work() { Kept = append(Kept[:0:cap(Kept)], new(int)) }\n"
	git("init", "-q")
	write("go.mod", "module example.com/work\n\ngo 1.26\n")
	write("work/work.go", work)
	write("work/work_test.go", bench)
	write("none/none.go", "package none\n")
	git("add", "-A")
	git("commit", "-qm", "first")
	write("work/work.go", strings.Replace(work, "new(int))", "new(int), new(int))", 1))
	write("added/added.go", "package work\n\nfunc Work() {}\n")
	write("added/added_test.go", bench)
	git("add", "-A")
	git("commit", "-qm", "second")
	return root
}

func TestBothTreesRunByTurns(t *testing.T) {
	root := repository(t)
	packages, err := benchmarked(t.Context(), root, []string{"./..."})
	require.NoError(t, err)
	require.Equal(t, []string{"added", "work"}, packages)

	_, commit, err := resolve(t.Context(), root, "HEAD^")
	require.NoError(t, err)
	scratch := t.TempDir()
	checkout := filepath.Join(scratch, "tree")
	_, err = output(t.Context(), root, "git", "worktree", "add", "--quiet", "--detach", checkout, commit)
	require.NoError(t, err)
	trees := []*tree{{name: "base", root: checkout, results: filepath.Join(scratch, "b")}, {name: "now", root: root, results: filepath.Join(scratch, "n")}}
	o := options{bench: ".", time: "10x", rounds: 3}
	var said bytes.Buffer
	require.NoError(t, o.compile(t.Context(), &said, trees, packages, scratch))
	require.NoError(t, o.measure(t.Context(), trees, packages))
	require.Equal(t, "added is not in base\n", said.String())
	for i, want := range []struct {
		runs   int
		allocs string
	}{{3, "1 allocs/op"}, {6, "2 allocs/op"}} {
		figures, err := os.ReadFile(trees[i].results)
		require.NoError(t, err)
		require.Equal(t, want.runs, strings.Count(string(figures), "\nBenchmarkWork"))
		require.Equal(t, 3, strings.Count(string(figures), want.allocs), "%s", figures)
	}
}

func TestChangedBenchmarksAreNamed(t *testing.T) {
	root := repository(t)
	_, commit, err := resolve(t.Context(), root, "HEAD^")
	require.NoError(t, err)
	var said bytes.Buffer
	require.NoError(t, differences(t.Context(), &said, root, commit, []string{"added", "work"}))
	require.Equal(t, "added/added_test.go is not as in base\n", said.String())
}

// TestNothingIsLeft fails after the checkout, because the repository has no tools/go.mod.
func TestNothingIsLeft(t *testing.T) {
	root := repository(t)
	t.Setenv("TMPDIR", t.TempDir())
	o := options{base: "HEAD^", bench: ".", time: "1x", rounds: 1}
	require.ErrorContains(t, o.run(t.Context(), &bytes.Buffer{}, root, []string{"./work"}), "go tool: ")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	for _, e := range left {
		require.NotContains(t, e.Name(), "benchcompare")
	}
	worktrees, err := output(t.Context(), root, "git", "worktree", "list")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(worktrees+"\n", "\n"))
}

func TestWrongBase(t *testing.T) {
	root := repository(t)
	for base, want := range map[string]string{
		"":        "no commit to compare with: set it with make bench-compare BASE=<commit>",
		"nothing": `no commit to compare with: "nothing" is not a commit of this repository`,
		"HEAD~9":  `no commit to compare with: "HEAD~9" is not a commit of this repository`,
		"--all":   `no commit to compare with: "--all" is not a commit of this repository`,
	} {
		err := options{base: base}.run(t.Context(), &bytes.Buffer{}, root, []string{"./..."})
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, errNoBase)
	}
	shallow := filepath.Join(t.TempDir(), "clone")
	_, err := output(t.Context(), root, "git", "clone", "-q", "--depth=1", "file://"+root, shallow)
	require.NoError(t, err)
	_, _, err = resolve(t.Context(), shallow, "HEAD^")
	require.EqualError(t, err, `no commit to compare with: "HEAD^" is not in this clone, which is shallow (git fetch --unshallow)`)
}
