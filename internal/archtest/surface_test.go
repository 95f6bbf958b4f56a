package archtest_test

import (
	"bytes"
	"encoding/json"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

// surfacePath lists the exported names that no other package uses, with the reasons why they are exported.
const surfacePath = "internal/archtest/exported.txt"

// exception is a line of exported.txt: a name, or TYPE.* for a type and its fields.
type exception struct {
	line int
	name string
}

// covers reports whether the exception is for a declared name.
func (e exception) covers(obj types.Object, name string) bool {
	of, all := strings.CutSuffix(e.name, ".*")
	field, isVar := obj.(*types.Var)
	return name == of || all && isVar && field.IsField() && strings.HasPrefix(name, of+".")
}

// exceptions reads exported.txt, if there is one.
func (u *surface) exceptions() []exception {
	content, _ := fs.ReadFile(u.fs, surfacePath)
	var all []exception
	for i, text := range strings.Split(string(content), "\n") {
		if name := strings.TrimSpace(text); name != "" && !strings.HasPrefix(name, "#") {
			all = append(all, exception{i + 1, name})
		}
	}
	return all
}

// checkSurface compares the exported names without a user with the list of those that may be exported.
func checkSurface(u *surface) []finding {
	var found []finding
	var excepted []types.Object
	for _, e := range u.exceptions() {
		known := len(excepted)
		for obj, name := range u.declared {
			if e.covers(obj, name) && !u.used[obj] {
				excepted = append(excepted, obj)
			}
		}
		if len(excepted) == known {
			found = append(found, finding{surfacePath, e.line, e.name + " has a user or does not exist; delete the line"})
		}
	}
	for _, obj := range excepted {
		u.mark(obj) // with the types in its declaration
	}
	for obj, name := range u.declared {
		if !u.used[obj] {
			at := u.set.Position(obj.Pos())
			found = append(found, finding{at.Filename, at.Line, "no other package uses " + name +
				"; unexport or delete it, use it in an example, or list it in " + surfacePath + " with a reason"})
		}
	}
	return found
}

// exports imports the packages of other modules from what the go command compiled. It lacks those that only bench and
// e2e import.
func exports(t *testing.T, s *source) types.Importer {
	t.Helper()
	arguments := []string{"list", "-deps", "-export", "-json=ImportPath,Export", "--"}
	for _, f := range s.files {
		for _, spec := range f.Imports {
			if at, err := strconv.Unquote(spec.Path.Value); err == nil && !f.nested && !within(at, module) && at != "C" && at != "unsafe" {
				arguments = append(arguments, at)
			}
		}
	}
	slices.Sort(arguments[5:])
	var failure strings.Builder
	list := exec.Command("go", slices.Compact(arguments)...)
	list.Dir, list.Stderr = root, &failure
	output, err := list.Output()
	require.NoError(t, err, failure.String())
	compiled := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(output)); d.More(); {
		var p struct{ ImportPath, Export string }
		require.NoError(t, d.Decode(&p))
		compiled[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(at string) (io.ReadCloser, error) {
		if compiled[at] == "" {
			return nil, fs.ErrNotExist
		}
		return os.Open(compiled[at])
	})
}

// TestSurface checks that every exported name has a user or a reason. With -v it prints how many names there are.
func TestSurface(t *testing.T) {
	s := repository(t)
	u := must.Get(newSurface(s, exports(t, s)))(t)
	t.Logf("%d exported names, %d of them without a user", len(u.declared), len(u.declared)-len(u.used))
	requireNone(t, checkSurface(u))
}

// nothing imports no package.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, fs.ErrNotExist }

func TestSurfaceFindsWhatHasNoUser(t *testing.T) {
	u, err := newSurface(read(t, tree(`
-- go.mod --
module github.com/leatproject/leat
-- cache/a.go --
package cache

func Used() Result { return Result{} }
func Unused()      {}
func Excused()     {}

type Result struct {
	Known   int
	Unknown int
	hidden  int
}

func (Result) Read() Mode { return First }
func (Result) Error() string { return "" }
func (Result) Run(int) {}
func (Result) Stray() {}

type Mode int

const (
	First Mode = iota
	Second
)

const Size = 1

type Failure struct{ Code int }
-- cache/runner.go --
package cache

type Runner interface{ Run(int) }
-- cache/ignored.go --
//go:build ignore

package cache

func Ignored() {}
-- cache/a_test.go --
package cache_test

import "github.com/leatproject/leat/cache"

func TestUnused() { cache.Unused() }

func ExampleShown() { _ = cache.Used().Known }
-- informer/a.go --
package informer

import "github.com/leatproject/leat/cache"

func Follow(cache.Runner) {}
-- cmd/leat/a.go --
package main

import "github.com/leatproject/leat/informer"

func Exported() { informer.Follow(nil) }
-- e2e/go.mod --
module github.com/leatproject/leat/e2e
-- e2e/a_test.go --
package e2e

import (
	"github.com/leatproject/leat/cache"
	"k8s.io/client-go/rest"
)

func TestAll() { _, _ = rest.Config{}, cache.Used().Read() }
-- internal/archtest/exported.txt --
# because
	cache Excused
	cache Failure.*
	cache Used
	cache Gone
`)), nothing{})
	require.NoError(t, err)
	const advice = "; unexport or delete it, use it in an example, or list it in internal/archtest/exported.txt with a reason"
	require.Equal(t, []string{
		"cache/a.go:16: no other package uses cache Result.Stray" + advice,
		"cache/a.go:25: no other package uses cache Size" + advice,
		"cache/a.go:4: no other package uses cache Unused" + advice,
		"cache/a.go:9: no other package uses cache Result.Unknown" + advice,
		"internal/archtest/exported.txt:4: cache Used has a user or does not exist; delete the line",
		"internal/archtest/exported.txt:5: cache Gone has a user or does not exist; delete the line",
	}, strs(checkSurface(u)))
}
