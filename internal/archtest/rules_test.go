package archtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// tree makes a repository from a text. A line "-- name --" begins a file, as in the txtar format.
func tree(text string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, part := range strings.Split(text, "\n-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		files[name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	return files
}

func strs(found []finding) []string {
	list := []string{}
	for _, f := range found {
		list = append(list, f.String())
	}
	slices.Sort(list)
	return list
}

// card is a correct package comment.
const card = `
// Package %[1]s is an example.
//
// # Example
//
// See Example and ExampleThing_Do.
//
// # Promises
//
//  1. It holds,
//     also here.
//  2. It stays.
//
// # Concurrency
//
// None.
//
// # Differences from client-go
//
// Many.
package %[1]s`

// missingRows returns the findings for a package with n promises, 1 to n, too many and without rows.
func missingRows(pkg string, n int) []string {
	found := []string{fmt.Sprintf("%s/doc.go:5: %d promises; 8 are the most", pkg, n)}
	for i := range n {
		found = append(found, fmt.Sprintf("%s/doc.go:%d: %s needs a row that names the tests: | %s | %d | … |", pkg, 7+i, promisesPath, pkg, i+1))
	}
	slices.Sort(found)
	return found
}

func TestRulesFindWhatTheyForbid(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(*source) []finding
		tree  string
		want  []string
	}{
		{"imports in order", checkImports, `
-- cache/a.go --
package cache
import "github.com/leatproject/leat/api"
import "github.com/leatproject/leat/internal/trie"
-- cache/a_test.go --
package cache_test
import "github.com/leatproject/leat/informer"
import "github.com/stretchr/testify/require"
-- cmd/leat/a.go --
package main
import "github.com/leatproject/leat/cache"
import "github.com/spf13/cobra"
-- e2e/go.mod --
module e2e
-- e2e/a.go --
package e2e
import "k8s.io/client-go/rest"
`, []string{}},
		{"imports that point up", checkImports, `
-- cache/a.go --
package cache

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)
-- workqueue/a.go --
package workqueue
import "github.com/leatproject/leat/api"
import "k8s.io/apimachinery/pkg/types"
`, []string{
			"cache/a.go:5: cache may not import informer; the table in internal/archtest/table_test.go allows it api internal/trie",
			"workqueue/a.go:2: workqueue may not import api; the table in internal/archtest/table_test.go allows it nothing of leat",
			"workqueue/a.go:3: workqueue may not import k8s.io/apimachinery/pkg/types; it knows nothing of Kubernetes",
		}},
		{"imports of others", checkImports, `
-- informer/a.go --
package informer
import "k8s.io/api/core/v1"
import "sigs.k8s.io/yaml"
import "k8s.io/client-go/rest"
import "k8s.io/apimachinery/pkg/types"
import "gopkg.in/yaml.v3"
import "github.com/stretchr/testify/require"
-- cache/a.go --
package cache
import "go.uber.org/zap/zapcore"
`, []string{
			"cache/a.go:2: cache may not import go.uber.org/zap/zapcore; only apiclient apiclient/* reflector informer informer/factory scale/scopes scale/referenced scale/multicluster controller cachedclient manager/leaderelection reconcile/events scale/shard scale/shardedsource manager metrics program webhook webhook/* manager/accessreview adapter/zapslog scale/warmstart scale/driftcheck observe/recording testserver testkit cmd/* examples/* may",
			"informer/a.go:2: informer may not import k8s.io/api/core/v1; only manager/leaderelection reconcile/events scale/shard internal/listerwatchertest cmd/* examples/* may",
			"informer/a.go:3: informer may not import sigs.k8s.io/yaml; only apiclient/kubeconfig testserver/faultplan testserver/internal/wire testserver/internal/writer internal/serve cmd/* examples/* may",
			"informer/a.go:4: informer may not import k8s.io/client-go/rest; nothing in this repository may",
			"informer/a.go:6: informer may not import gopkg.in/yaml.v3; nothing in this repository may",
			"informer/a.go:7: informer may not import github.com/stretchr/testify/require; only internal/fixture internal/fixture/must internal/listerwatchertest may",
		}},
		{"packages", checkImports, `
-- internal/util/a.go --
package util
-- turbine/a.go --
package turbine
-- turbine/b.go --
package turbine
`, []string{
			"internal/util/a.go:1: a package called util is a dumping ground; name it after what it is",
			"internal/util/a.go:1: package internal/util is not in the table of internal/archtest/table_test.go; give it a row there that says what it may import, and one in the design",
			"turbine/a.go:1: package turbine is not in the table of internal/archtest/table_test.go; give it a row there that says what it may import, and one in the design",
		}},
		{"comments", checkComments, `
-- cache/a.go --
package cache

type A struct{}
// B is documented.
type B[T any] struct{}
func (b *B[T]) Do() {}
func (b B[T]) do() {}
// Done is documented.
func (b B[T]) Done() {}
type c struct{}
func (c) Do() {}
func F() {}
func f() {}
// Both of these.
const (
	X = 1
	Y = 2
)
var (
	// P is documented.
	P int
	Q int // Q too.
	R, s int
)
// I is documented.
type I interface {
	// Do is documented.
	Do()
	Undo()
	GetName() string
}
type (
	// G is documented.
	G int
	H int
)
-- cmd/leat/a.go --
package main
func Main() {}
`, []string{
			"cache/a.go:12: F has no doc comment",
			"cache/a.go:23: R has no doc comment",
			"cache/a.go:29: I.Undo has no doc comment",
			"cache/a.go:35: H has no doc comment",
			"cache/a.go:3: A has no doc comment",
			"cache/a.go:6: B.Do has no doc comment",
		}},
		{"cards in order", checkCards, `
-- cache/doc.go --` + fmt.Sprintf(card, "cache") + `
-- cache/a_test.go --
package cache_test
func TestHolds() {}
func Example() {}
func ExampleThing_Do() {}
-- internal/archtest/promises.md --
| package | promise | tests |
|---|---|---|
| cache | It holds, also here. | TestHolds |
| cache | It stays. | TestHolds |
| informer | It holds, also here. | TestHolds |
| informer | It stays. | TestHolds |
| internal/trie | One. | TestOne |
-- informer/doc.go --` + fmt.Sprintf(card, "informer") + `
-- informer/a_test.go --
package informer_test
func TestHolds() {}
func TestOther() {}
func Example() {}
func ExampleThing_Do() {}
-- cmd/leat/doc.go --
// Command leat has a comment of its own kind.
package main
-- internal/trie/doc.go --
// Package trie has no example.
//
// # Promises
//
//  1. One.
//
// # Concurrency
package trie
-- internal/trie/a_test.go --
package trie
func TestOne() {}
`, []string{}},
		{"cards that are missing", checkCards, `
-- cache/a.go --
// Package cache is documented elsewhere.
package cache
-- deltafifo/doc.go --
package deltafifo
-- reflector/doc.go --
// Package reflector says nothing.
package reflector
`, []string{
			"cache/a.go:1: the comment of package cache belongs into its doc.go",
			"cache/a.go:2: package cache has no doc.go with a package comment",
			"deltafifo/doc.go:1: package deltafifo has no doc.go with a package comment",
			`reflector/doc.go:1: the comment of package reflector has no section "Concurrency"`,
			`reflector/doc.go:1: the comment of package reflector has no section "Example"`,
			`reflector/doc.go:1: the comment of package reflector has no section "Promises"`,
		}},
		{"cards that are wrong", checkCards, `
-- cache/doc.go --
// Package cache is an example.
//
// # Promises
//
//  1. One.
//  3. Two.
//
// # Example
//
// See ExampleNone. c := cache.New()
//
// # Concurrency
//
// # Differences from client-go
package cache
-- internal/archtest/promises.md --
| cache | One. | TestOne |
-- api/doc.go --
// Package api is an example.
//
// # Example
//
// # Promises
//
// Many.
//
// # Concurrency
` + strings.Repeat("//\n", 70) + `package api
-- trie/doc.go --
// Package trie is an example.
//
// # Example
//
// # Promises
//
//  1. 1
//  2. 2
//  3. 3
//  4. 4
//  5. 5
//  6. 6
//  7. 7
//  8. 8
//  9. 9
//
// # Concurrency
package trie
`, append([]string{
			`api/doc.go:5: the promises are not numbered, as "//  1. "`,
			"api/doc.go:80: doc.go has 80 lines; 70 are the most",
			"cache/doc.go:10: a line of code begins with a tab",
			"cache/doc.go:10: there is no ExampleNone in the tests of cache",
			"cache/doc.go:6: internal/archtest/promises.md needs a row that names the tests: | cache | Two. | … |",
			"cache/doc.go:6: promise 2 has the number 3",
			`cache/doc.go:8: section "Example" is out of order; the order is Example, Promises, Concurrency, Differences from client-go`,
		}, missingRows("trie", 9)...)},
		{"the landing page", checkLandingPage, `
-- doc.go --
// Package leat leads to package [cache]. Package [api] has no target.
//
// [cache]: https://pkg.go.dev/github.com/leatproject/leat/cache
// [informer]: https://pkg.go.dev/github.com/leatproject/leat/informer
package leat
-- api/a.go --
package api
-- cache/a.go --
package cache
-- informer/a.go --
package informer
-- internal/trie/a.go --
package trie
-- cmd/leat/a.go --
package main
`, []string{
			"doc.go:1: no sentence links package api; the target is // [api]: https://pkg.go.dev/github.com/leatproject/leat/api",
			"doc.go:1: no sentence links package informer; the target is // [informer]: https://pkg.go.dev/github.com/leatproject/leat/informer",
		}},
		{"the map", checkMap, `
-- cache/a.go --
package cache
-- internal/trie/a.go --
package trie
-- examples/mill/a.go --
package mill
-- internal/archtest/packages.md --
| ` + "`cache`" + ` | The objects of internal/trie. |
`, []string{"internal/archtest/packages.md:1: no table names package internal/trie"}},
		{"promises", checkPromiseTable, `
-- cache/a.go --
package cache
-- cache/a_test.go --
package cache_test
func TestOne() {}
func (t) TestFour() {}
-- internal/archtest/promises.md --
# Promises

| package | promise | tests |
|---|---|---|
| cache | Fine. | TestOne, cache.TestOne |
| cache | No test. | |
| cache | | TestOne |
| turbine | No package. | cache.TestOne |
| cache | No such test. | TestOne, TestFour |
| cache | Not a test. | One |
`, []string{
			"internal/archtest/promises.md:10: One is not the name of a test",
			"internal/archtest/promises.md:6: a row needs a promise and at least one test",
			"internal/archtest/promises.md:7: a row needs a promise and at least one test",
			"internal/archtest/promises.md:8: there is no package turbine",
			"internal/archtest/promises.md:9: the other rows of cache stand above",
			"internal/archtest/promises.md:9: there is no TestFour in the tests of cache",
		}},
		{"prose", func(s *source) []finding { return checkProse(t, s) }, `
-- cache/a.go --
// A page about nobody and
// none is hard to read, and so is one for
// ever; ` + strings.Repeat("long ", 24) + `
package cache

//go:generate ` + strings.Repeat("long ", 24) + `

func a() { // who reads ` + strings.Repeat("long ", 24) + `
	// The rule is plain. Who knows is told.
}
-- cache/a_test.go --
package cache_test
func Example() {
	// Output:
	// in vain
}
-- CHANGELOG.md --
# Changelog

## Unreleased` + strings.Repeat("\n", 61) + `
## v0.1.0` + strings.Repeat("\n", 99) + `
-- docs/page.md --
# A page

Say it anew, not ` + "`in vain`" + `.
` + "```" + `
in vain
` + "```" + `
| in vain | ` + strings.Repeat("long ", 24) + `
` + strings.Repeat("long ", 24) + `.
`, []string{
			"CHANGELOG.md:3: 61 lines of a release; 60 are the most",
			`cache/a.go:2: "for ever" is hard to read; write forever`,
			`cache/a.go:2: "none is" is hard to read; write the actual subject with "not"`,
			`cache/a.go:3: a comment of more than 120 columns`,
			`cache/a.go:8: "who reads" is hard to read; write a noun instead of "who"`,
			`cache/a.go:9: "Who knows" is hard to read; write a noun instead of "who"`,
			`cache/a.go:9: "is told" is hard to read; write the actual subject with an active verb`,
			`docs/page.md:3: "anew" is hard to read; write again, or new`,
			`docs/page.md:7: "in vain" is hard to read; write without effect`,
			`docs/page.md:8: a line of more than 120 columns`,
		}},
		{"style", checkStyle, `
-- cache/a.go --
package cache
import "context"
type a struct {
	n   int
	ctx context.Context
}
func init() {}
func long() {` + strings.Repeat("\n", 60) + `}
func (a) init() { time.Sleep(1) }
-- cache/b.go --
package cache` + strings.Repeat("\n", 500) + `
-- cache/a_test.go --
package cache
func TestA() {
	time.Sleep(1)
	<-time.After(1)
	defer func() { f(time.Sleep) }()
}
-- e2e/go.mod --
module e2e
-- e2e/a_test.go --
package e2e
func TestA() { time.Sleep(1) }
`, []string{
			"cache/a.go:5: a context in a struct; pass it to the call that it is for",
			"cache/a.go:7: an init function; packages have no state of their own",
			"cache/a.go:8: long has 61 lines; 60 are the most",
			"cache/a_test.go:3: time.Sleep in a test; wait for what is to happen, or use a synctest bubble",
			"cache/a_test.go:5: time.Sleep in a test; wait for what is to happen, or use a synctest bubble",
			"cache/b.go:500: a file of 501 lines; more than 500 are more than one thing",
			"e2e/a_test.go:2: time.Sleep in a test; wait for what is to happen, or use a synctest bubble",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := read(t, tree(c.tree))
			require.Equal(t, c.want, strs(c.check(s)))
		})
	}
}

func TestModuleRulesFindWhatTheyForbid(t *testing.T) {
	require.Equal(t, []string{
		"docs/dependencies.md:4: go.uber.org/zap has no user or no reason",
		"docs/dependencies.md:5: sigs.k8s.io/yaml is no direct dependency in go.mod",
		"go.mod:10: k8s.io/client-go is what leat does without",
		"go.mod:7: github.com/stretchr/testify has no row in docs/dependencies.md",
	}, strs(checkModule(t, tree(`
-- go.mod --
module example.com/leat

require k8s.io/apimachinery v0.37.2

require (
	go.uber.org/zap v1.28.0
	github.com/stretchr/testify v1.12.1
)
require (
	k8s.io/client-go v0.37.2 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
-- docs/dependencies.md --
| module | used by | why |
|---|---|---|
`+"| `k8s.io/apimachinery` | core | types |"+`
`+"| `go.uber.org/zap` | core | |"+`
`+"| `sigs.k8s.io/yaml` | nobody | none |"+`
`))))
	require.Equal(t, []string{"k8s.io/api/core/v1", "github.com/spf13/cobra", "k8s.io/client-go/rest"}, forbiddenIn([]string{
		"fmt", "k8s.io/apimachinery/pkg/types", "k8s.io/api/core/v1", "github.com/spf13/cobra", "k8s.io/client-go/rest",
	}))
}
