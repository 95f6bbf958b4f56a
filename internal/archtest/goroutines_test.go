package archtest_test

import (
	"go/ast"
	"io/fs"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

// goroutines lists the functions of the library that start a goroutine, with the row of docs/concurrency.md that
// describes it. A goroutine that nobody waits for is a leak, so a new one needs a row.
var goroutines = map[string]string{
	"apiclient/exec Plugin.knownOrJoin":   "run of a credential plugin (`apiclient/exec`)",
	"apiclient/kubeconfig until":          "`kubeconfig.Load`",
	"scale/multicluster Set.begin":        "cluster of a `multicluster.Set`",
	"scale/multicluster member.live":      "cluster of a `multicluster.Set`",
	"scale/multicluster source.Run":       "source of `multicluster`",
	"controller Controller.begin":         "source",
	"controller Controller.startWorker":   "worker",
	"reconcile/expectations SlowStart":    "`expectations.SlowStart`",
	"informer/factory Factory.begin":      "shared informer",
	"informer/factory Factory.release":    "released share",
	"informer pipeline.begin":             "processListener",
	"informer pipeline.run":               "reflector",
	"informer stream.Run":                 "consistency check",
	"manager/leaderelection Elector.hold": "`Elector.Run` itself",
	"manager Manager.begin":               "runnable of a `Manager`",
	"manager UntilSignal":                 "`UntilSignal`",
	"scale/referenced feed.Run":           "`Set.Run` of `referenced`",
	"scale/scopes Set.begin":              "scope of a `scopes.Set`",
	"scale/shard source.Run":              "`Kind.Source` of `scale/shard`",
	"testkit Kit.Start":                   "`testkit`, `testkit/simulation`",
	"testkit Run":                         "`testkit`, `testkit/simulation`",
	"testkit/simulation Simulation.start": "`testkit`, `testkit/simulation`",
	"testserver controlPlane.RoundTrip":   "`testserver`",
	"testserver/internal/wire upgrade":    "`testserver`",
	"scale/warmstart decodeParts":         "list from a file of `scale/warmstart`",
	"webhook Server.Run":                  "`Server.Run` of `webhook`",
}

// programs have goroutines of their own.
var programs = []string{"cmd/", "examples/", "internal/"}

func TestGoroutinesAreListed(t *testing.T) {
	s := repository(t)
	page := must.Get(fs.ReadFile(s.fs, "docs/concurrency.md"))(t)
	started := map[string]bool{}
	for f := range s.own {
		if !isProgram(f.pkg) {
			for _, name := range starters(f) {
				started[f.pkg+" "+name] = true
			}
		}
	}
	for name, row := range goroutines {
		require.True(t, started[name], "%s starts no goroutine", name)
		require.Contains(t, string(page), "\n| "+row+" |", "docs/concurrency.md needs a row for %s", name)
		delete(started, name)
	}
	require.Empty(t, started, "these functions start goroutines and are not listed")
}

func isProgram(pkg string) bool {
	for _, folder := range programs {
		if strings.HasPrefix(pkg, folder) {
			return true
		}
	}
	return false
}

// starters returns the functions and methods of a file that contain a go statement, or call a method Go.
func starters(f *file) (names []string) {
	for _, d := range f.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		starts := false
		ast.Inspect(function.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
					starts = true
				}
			}
			return !starts
		})
		if starts {
			name, _ := exportedName(function)
			names = append(names, name)
		}
	}
	return names
}
