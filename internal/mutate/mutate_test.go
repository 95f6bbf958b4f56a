package main

import (
	"go/importer"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program has one of everything that is mutated, and prints a line for each.
const program = `package main

import "fmt"

type named struct{ ok bool }

func check(n int) (err error) {
	if n > 3 || n == 1 {
		return fmt.Errorf("no %d", n)
	}
	return nil
}

func main() {
	a, b, list := 4, 5, []int{1, 2, 3}
	less := a < b && b <= 5
	a += 2
	for i := range list {
		if i == 1 {
			continue
		}
		a++
	}
	switch {
	case a-b > 2:
		a = 1
	}
	n := named{ok: true}
	fmt.Println(a, b, less, list[1:], min(a, b), check(a), check(2), n, a != b)
}
`

// want are its mutants.
const want = `check: n > 3 || n == 1 → true
check: n > 3 || n == 1 without n > 3
check: n > 3 || n == 1 without n == 1
check: n > 3 with >=
check: return fmt.Errorf("no %d", n) → nil
main: 4 + 1 in a, b, list := 4, 5, []int{1, 2, 3}
main: 5 + 1 in a, b, list := 4, 5, []int{1, 2, 3}
main: 1 + 1 in a, b, list := 4, 5, []int{1, 2, 3}
main: 2 + 1 in a, b, list := 4, 5, []int{1, 2, 3}
main: 3 + 1 in a, b, list := 4, 5, []int{1, 2, 3}
main: a < b && b <= 5 without a < b
main: a < b && b <= 5 without b <= 5
main: a < b with <=
main: b <= 5 with <
main: remove a += 2
main: 2 + 1 in a += 2
main: i == 1 → true
main: i == 1 → false
main: remove continue
main: remove a++
main: a-b > 2 → true
main: a-b > 2 → false
main: a-b > 2 with >=
main: a-b with +
main: remove a = 1
main: 1 + 1 in a = 1
main: flip true in n := named{ok: true}
main: remove fmt.Println(a, b, less, list[1:], min(a, b), check(a), check(2), n, a != b)
main: 1 + 1 in fmt.Println(a, b, less, list[1:], min(a, b), check(a), check(2), n, a != b)
main: min(a, b) with max
main: 2 + 1 in fmt.Println(a, b, less, list[1:], min(a, b), check(a), check(2), n, a != b)
main: a != b negated`

// parsed returns the program as a package in a folder of its own.
func parsed(t *testing.T) *source {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	exports, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", "fmt").Output()
	require.NoError(t, err)
	var export importer.Lookup = open(map[string]string{"fmt": strings.TrimSpace(string(exports))})
	s, err := parse(listed{ImportPath: "main", Dir: dir, Name: "main", GoFiles: []string{"main.go"}}, export)
	require.NoError(t, err)
	return s
}

func TestFindsMutants(t *testing.T) {
	var names []string
	for _, m := range parsed(t).mutants() {
		names = append(names, strings.TrimPrefix(m.name, "main/main.go "))
	}
	require.Equal(t, want, strings.Join(names, "\n"))
}

// TestMutantsDifferInOnePlace compiles the program with its mutants and runs each. Mutant 0 prints what the program
// prints. Most others print something else; the test lists the ones that make no difference to it.
func TestMutantsDifferInOnePlace(t *testing.T) {
	s := parsed(t)
	mutants := s.mutants()
	rendered := render(s.files[0].content, mutants)
	require.Equal(t, strings.Count(program, "\n"), strings.Count(string(rendered), "\n"), "lines have moved")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "main.go"), rendered, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "helpers.go"), []byte(strings.ReplaceAll(helpers, "%s", "main")), 0o600))
	compile := exec.Command("go", "build", "-o", "program", "main.go", "helpers.go")
	compile.Dir = s.dir
	output, err := compile.CombinedOutput()
	require.NoError(t, err, string(output))
	print := func(id int) string {
		command := exec.Command(filepath.Join(s.dir, "program"))
		command.Env = append(os.Environ(), "MUTATE="+strconv.Itoa(id))
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
	original := print(0)
	require.Equal(t, "1 5 true [2 3] 1 no 1 <nil> {true} true\n", original)
	var same []string
	for _, m := range mutants {
		if print(m.id) == original {
			same = append(same, strings.TrimPrefix(m.name, "main/main.go "))
		}
	}
	require.Equal(t, []string{
		"check: n > 3 || n == 1 without n > 3", "check: n > 3 with >=",
		"main: 1 + 1 in a, b, list := 4, 5, []int{1, 2, 3}",
		"main: a < b && b <= 5 without a < b", "main: a < b && b <= 5 without b <= 5", "main: a < b with <=",
		"main: 2 + 1 in a += 2", "main: i == 1 → false", "main: remove continue", "main: a-b > 2 → true",
		"main: a-b > 2 with >=", "main: a-b with +",
		"main: 2 + 1 in fmt.Println(a, b, less, list[1:], min(a, b), check(a), check(2), n, a != b)",
	}, same)
}

func TestSurvivorsAreComparedWithTheList(t *testing.T) {
	reasons, err := parseSurvivors("# why\n\np/a.go f: a → true\n\tit is\n\tso\np/a.go g: b\n\tgone\nq/a.go h: c\n\tother\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"p/a.go f: a → true": "it is so", "p/a.go g: b": "gone", "q/a.go h: c": "other"}, reasons)
	listed, other := &mutant{name: "p/a.go f: a → true"}, &mutant{name: "p/a.go f: a → false"}
	require.Equal(t, []string{"p/a.go g: b"}, outdated(reasons, "p", []*mutant{listed, other}))
	tally := &tally{pkg: "p", reasons: reasons, began: time.Now()}
	tally.note(listed, survived, nil)
	tally.note(other, killed, nil)
	tally.note(other, hung, nil)
	require.Zero(t, tally.unlisted)
	tally.note(other, survived, nil)
	require.Equal(t, 1, tally.unlisted)

	for text, says := range map[string]string{
		"\tit is": "a reason of no mutant", "a\n\tb\na\n\tb": "a is listed twice", "a\nb\n\tc": "a has no reason",
	} {
		_, err := parseSurvivors(text)
		require.ErrorContains(t, err, says)
	}
	_, err = parseSurvivors(survivorsText)
	require.NoError(t, err)
}

func TestSamplesAreReproducible(t *testing.T) {
	mutants := parsed(t).mutants()
	for id := range mutants {
		mutants[id].id = id
	}
	first := options{sample: 10, seed: 1}.pick(mutants)
	require.Len(t, first, 10)
	require.Equal(t, first, options{sample: 10, seed: 1}.pick(mutants))
	require.NotEqual(t, first, options{sample: 10, seed: 2}.pick(mutants))
	require.Equal(t, mutants, options{sample: 1000}.pick(mutants))
	require.Equal(t, mutants, options{}.pick(mutants))
	named := options{only: "^main/main.go check: return|negated"}.pick(mutants)
	require.Len(t, named, 2)
}
