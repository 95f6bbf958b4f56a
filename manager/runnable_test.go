package manager_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/reconcile/events"
)

// A change of one of these methods would take its effect away without an error of the compiler, because the manager
// checks for them at run time.
var (
	_ interface {
		manager.Runnable
		manager.WarmUpRunnable
		manager.SyncNotifier
		manager.SyncExplainer
		manager.Debuggable
		manager.OptionsReporter
	} = (*controller.Controller[api.Key])(nil)
	_ interface {
		manager.Runnable
		manager.InformerRunnable
		manager.SyncNotifier
	} = (*informer.Informer[*metav1.PartialObjectMetadata])(nil)
	_ interface {
		manager.Runnable
		manager.FactoryRunnable
		manager.SyncNotifier
	} = (*factory.Factory)(nil)
	_ interface {
		manager.Runnable
		manager.Named
		manager.SyncNotifier
		manager.ServerRunnable
	} = (*manager.Server)(nil)
	_ interface {
		manager.Runnable
		manager.DeadlineRunnable
	} = (*events.Recorder)(nil)
	_ interface {
		manager.Elector
		manager.CheckedElector
	} = (*leaderelection.Elector)(nil)
)

// TestOptionalInterfacesAreListed compares the comment of Runnable with the interfaces of its file, and requires that
// the manager checks for methods by the names of these interfaces.
func TestOptionalInterfacesAreListed(t *testing.T) {
	files := must.Get(filepath.Glob("*.go"))(t)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(set, name, nil, parser.ParseComments))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && name != "runnable.go" {
				t.Errorf("%s: an interface that belongs into runnable.go, with a name", set.Position(i.Pos()))
			}
			return true
		})
		if name == "runnable.go" {
			requireListed(t, file)
		}
	}
}

// requireListed requires that the comment of Runnable names every exported interface of its file.
func requireListed(t *testing.T, file *ast.File) {
	t.Helper()
	var comment string
	var names []string
	for _, d := range file.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		spec := types.Specs[0].(*ast.TypeSpec)
		if spec.Name.Name == "Runnable" {
			comment = types.Doc.Text()
		} else if _, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
			names = append(names, spec.Name.Name)
		}
	}
	require.Len(t, names, 17, "this test finds the interfaces")
	for _, name := range names {
		require.Regexp(t, `\b`+name+`\b`, comment, "the table of Runnable has a row for each optional interface")
	}
}
