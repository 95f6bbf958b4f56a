package archtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// tree makes a repository of a text: "-- name --" begins a file, as in the txtar format.
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

// card is a package comment as it should be.
const card = `
// Package %[1]s is an example.
//
// # Place in the pipeline
//
// Nowhere.
//
// # Guarantees
//
//  1. It holds (TestHolds, informer.TestOther),
//     also here.
//
// # Concurrency
//
// None.
//
// # Differences from client-go
//
// Many.
//
// # Example
//
// See Example and ExampleThing_Do.
package %[1]s`

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
			"cache/a.go:2: cache may not import go.uber.org/zap/zapcore; only apiclient apiclient/* reflector informer controller client leaderelection recorder manager metrics testserver cmd/* examples/* may",
			"informer/a.go:2: informer may not import k8s.io/api/core/v1; only leaderelection recorder internal/listerwatchertest cmd/* examples/* may",
			"informer/a.go:3: informer may not import sigs.k8s.io/yaml; only apiclient/kubeconfig testserver cmd/* examples/* may",
			"informer/a.go:4: informer may not import k8s.io/client-go/rest; nothing in this repository may",
			"informer/a.go:6: informer may not import gopkg.in/yaml.v3; nothing in this repository may",
			"informer/a.go:7: informer may not import github.com/stretchr/testify/require; only internal/listerwatchertest may",
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
// Package trie has no counterpart.
//
// # Place in the pipeline
//
// # Guarantees
//
//  1. One (TestOne).
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
			`reflector/doc.go:1: the comment of package reflector has no section "Differences from client-go"`,
			`reflector/doc.go:1: the comment of package reflector has no section "Guarantees"`,
			`reflector/doc.go:1: the comment of package reflector has no section "Place in the pipeline"`,
		}},
		{"cards that are wrong", checkCards, `
-- cache/doc.go --
// Package cache is an example.
//
// # Guarantees
//
//  1. One (TestOne).
//  2. Two.
//  4. Four (TestFour, FuzzFour).
//
// # Place in the pipeline
//
// # Extra
//
// # Concurrency
//
// # Differences from client-go
//
// # Example
//
// See ExampleNone.
package cache
-- cache/a_test.go --
package cache_test
func TestOne() {}
func (t) TestFour() {}
func FuzzFour() {}
-- api/doc.go --
// Package api is an example.
//
// # Place in the pipeline
//
// # Guarantees
//
// Many.
//
// # Concurrency
//
// # Differences from client-go
package api
`, []string{
			`api/doc.go:5: the guarantees are not numbered, as "//  1. "`,
			"cache/doc.go:19: there is no ExampleNone in the tests of cache",
			"cache/doc.go:6: guarantee 2 names no test",
			"cache/doc.go:7: guarantee 3 is numbered 4",
			"cache/doc.go:7: there is no TestFour in the tests of cache",
			`cache/doc.go:9: section "Place in the pipeline" stands out of order; it is Place in the pipeline, Guarantees, Concurrency, Differences from client-go, Example`,
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
			require.Equal(t, c.want, strs(c.check(read(t, tree(c.tree)))))
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
