package docs_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/webhook"
)

// onEachReplica is a runnable that asks for no leader.
type onEachReplica struct{ manager.Func }

func (onEachReplica) NeedLeaderElection() bool { return false }

// TestRunnablesAreInTheGroupsOfTheTable adds one runnable of each kind that the table of migrate.md names.
func TestRunnablesAreInTheGroupsOfTheTable(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://127.0.0.1:1"}))(t)
	server := must.Get(manager.NewServer("server", manager.ServerOptions{Address: "127.0.0.1:0", Handler: http.NotFoundHandler()}))(t)
	hooks := must.Get(webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"}))(t)
	events := must.Get(events.New(client, events.Options{Controller: "recorder"}))(t)
	nothing := manager.Func(func(context.Context) error { return nil })
	pods := informer.New(apiclient.NewPartial[*walkedPod](client, podResource, ""), informer.Options[*walkedPod]{})
	reconciler := controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) { return controller.Result{}, nil })
	kinds := map[string]manager.Runnable{
		"servers": server, "webhook servers": hooks, "recorders of Events": events,
		"informers": pods, "factories": factory.New(factory.Options{}),
		"a `NeedLeaderElection` that returns false": onEachReplica{nothing},
		"controllers": controller.New("walk", reconciler, controller.Options{}),
		"**every other runnable, such as a `manager.Func`**": nothing,
	}
	groups := map[string]manager.Group{
		"`Servers`": manager.Servers, "`Caches`": manager.Caches, "`Others`": manager.Others, "`WarmUp`": manager.WarmUp, "`Elected`": manager.Elected,
	}
	m := must.Get(manager.New(manager.Options{}))(t)
	found := 0
	for _, row := range rows(t, "migrate.md") {
		group, ours := groups[row[0]]
		if !ours {
			continue
		}
		all := strings.Split(row[1], ", ")
		if kinds[row[1]] != nil {
			all = []string{row[1]}
		}
		for _, kind := range all {
			require.NotNil(t, kinds[kind], kind)
			require.Equal(t, group, must.Get(m.AddWith(kinds[kind], manager.Placement{}))(t).Group(), kind)
			found++
		}
	}
	require.Equal(t, 8, found)
}

var given = regexp.MustCompile("`(\\w+(?:/\\w+)*)\\.([A-Z]\\w*)\\.([A-Z]\\w*)`(?:,|) \\(?(\\d+) (s|minutes)\\b")

// TestDefaultsOnPagesAreThoseOfTheComments compares a default that a page gives for an option, such as
// `informer.Options.StuckAfter` (5 minutes), with the comment of the field.
func TestDefaultsOnPagesAreThoseOfTheComments(t *testing.T) {
	folders, found := packages(t), 0
	for path, page := range pages(t) {
		for _, m := range given.FindAllStringSubmatch(strings.Join(strings.Fields(withoutCode(page)), " "), -1) {
			if folder := folders[m[1]]; folder != "" && !strings.HasPrefix(path, "decisions") {
				comment := fieldComment(t, folder, m[2], m[3])
				require.Regexp(t, `\b(0|Zero) means `+m[4]+" "+m[5]+`\b`, comment, "%s: %s", path, m[0])
				found++
			}
		}
	}
	require.GreaterOrEqual(t, found, 5)
}

// fieldComment returns the comment of a field of a struct, in one line.
func fieldComment(t *testing.T, folder, structure, field string) (comment string) {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	for _, path := range paths {
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == structure {
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, name := range f.Names {
							if name.Name == field {
								comment = strings.Join(strings.Fields(f.Doc.Text()), " ")
							}
						}
					}
				}
			}
			return true
		})
	}
	return comment
}

var example = regexp.MustCompile(`go run \./(examples/\w+)([^\n]*(?:\\\n[^\n]*)*)`)

func TestFlagsOfTheExamples(t *testing.T) {
	paths := must.Get(filepath.Glob("../examples/*/README.md"))(t)
	all := pages(t)
	for _, path := range paths {
		text := must.Get(os.ReadFile(path))(t)
		all[path] = string(text)
	}
	found := 0
	for path, page := range all {
		for _, run := range example.FindAllStringSubmatch(page, -1) {
			code := sources(t, run[1], "examples/cli")
			command, _, _ := strings.Cut(run[2], "#")
			for _, flag := range regexp.MustCompile(`\s--([a-z-]+)`).FindAllStringSubmatch(command, -1) {
				require.True(t, strings.Contains(code, `"`+flag[1]+`"`), "%s: %s", path, run[0])
				found++
			}
		}
	}
	require.Greater(t, found, 5)
}
