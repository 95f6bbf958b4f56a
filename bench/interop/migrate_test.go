package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	// The page uses these packages, so that go.mod must require what they need.
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	_ "github.com/leatproject/leat/adapter/clientgo"
	_ "github.com/leatproject/leat/adapter/clientgo/queue"
	_ "github.com/leatproject/leat/adapter/clientgo/restconfig"
	_ "github.com/leatproject/leat/adapter/controllerruntime"
)

// sides are the libraries whose code docs/migrate.md shows: the first line of each block names one. given are the
// variables that the blocks use without declaring them.
var sides = map[string]struct{ given, result string }{
	"client-go": {result: "struct{}", given: `
var (
	ctx context.Context
	config *rest.Config
	clientset kubernetes.Interface
	listWatch cache.ListerWatcher
	indexer cache.Indexer
	queue workqueue.TypedRateLimitingInterface[string]
	sync func(context.Context, string) error
	work func(context.Context)
	gone func(*corev1.Pod)
)`},
	"controller-runtime": {result: "reconcile.Result", given: `
var (
	ctx context.Context
	config *rest.Config
	reconciler reconcile.Reconciler
	request reconcile.Request
	reader client.Reader
	writer client.Client
	scheme *runtime.Scheme
	set appsv1.ReplicaSet
	pod corev1.Pod
)`},
	"leat": {result: "leatcontroller.Result", given: `
var (
	ctx context.Context
	config *rest.Config
	clientset kubernetes.Interface
	listWatch cache.ListerWatcher
	client *apiclient.Client
	podsResource, replicaSetsResource api.Resource
	pods *apiclient.TypedClient[*corev1.Pod]
	podCache leatcache.Reader[*corev1.Pod]
	podInformerOfLeat *informer.Informer[*corev1.Pod]
	leatReconciler leatcontroller.Reconciler[api.Key]
	request reconcile.Request
	sets *cachedclient.Typed[*appsv1.ReplicaSet]
	sync func(context.Context, string) error
	work func(context.Context)
	gone func(*corev1.Pod)
	set appsv1.ReplicaSet
	pod corev1.Pod
)`},
}

// packages are the imports of the blocks by name.
var packages = map[string]string{
	"context": "context", "time": "time",
	"api": leat("api"), "apiclient": leat("apiclient"), "informer": leat("informer"), "packed": leat("packed"), "program": leat("program"),
	"manager": leat("manager"), "owner": leat("owner"), "status": leat("status"), "cachedclient": leat("cachedclient"),
	"leatcache": leat("cache"), "leatcontroller": leat("controller"), "leatelection": leat("leaderelection"),
	"runtimecache": leat("adapter/controllerruntime"), "runtimeclient": "sigs.k8s.io/controller-runtime/pkg/client",
	"clientgo": leat("adapter/clientgo"), "restconfig": leat("adapter/clientgo/restconfig"), "leatqueue": leat("adapter/clientgo/queue"),
	"appsv1": "k8s.io/api/apps/v1", "corev1": "k8s.io/api/core/v1",
	"metav1": "k8s.io/apimachinery/pkg/apis/meta/v1", "labels": "k8s.io/apimachinery/pkg/labels",
	"runtime": "k8s.io/apimachinery/pkg/runtime", "apierrors": "k8s.io/apimachinery/pkg/api/errors",
	"kubernetes": "k8s.io/client-go/kubernetes", "informers": "k8s.io/client-go/informers", "rest": "k8s.io/client-go/rest",
	"listers": "k8s.io/client-go/listers/core/v1", "cache": "k8s.io/client-go/tools/cache", "workqueue": "k8s.io/client-go/util/workqueue",
	"leaderelection": "k8s.io/client-go/tools/leaderelection", "resourcelock": "k8s.io/client-go/tools/leaderelection/resourcelock",
	"ctrl": "sigs.k8s.io/controller-runtime", "controller": "sigs.k8s.io/controller-runtime/pkg/controller",
	"client": "sigs.k8s.io/controller-runtime/pkg/client", "reconcile": "sigs.k8s.io/controller-runtime/pkg/reconcile",
	"controllerutil": "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil",
}

func leat(name string) string { return "github.com/leatproject/leat/" + name }

var block = regexp.MustCompile("(?s)```go\n// ([a-z-]+)\n(.*?)```")

// TestMigrationPageCompiles compiles every block of docs/migrate.md as the body of a function. The blocks of one
// library are one package, which exists only in an overlay of the go command.
func TestMigrationPageCompiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migrate.md"))
	require.NoError(t, err)
	blocks := block.FindAllSubmatch(page, -1)
	require.Equal(t, bytes.Count(page, []byte("```go\n")), len(blocks), "each block begins with the name of a library")
	code := map[string]*strings.Builder{}
	for i, b := range blocks {
		side := string(b[1])
		require.Contains(t, sides, side)
		if code[side] == nil {
			code[side] = &strings.Builder{}
		}
		fmt.Fprintln(code[side], function(t, i, sides[side].result, string(b[2])))
	}
	require.Len(t, code, len(sides))
	for side, functions := range code {
		compile(t, strings.ReplaceAll(side, "-", ""), sides[side].given+"\n"+functions.String())
	}
}

// function returns a function with a block as its body. Variables that the block declares count as used.
func function(t *testing.T, n int, result, body string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+body+"\n}", 0)
	require.NoError(t, err, body)
	block := file.Decls[0].(*ast.FuncDecl).Body
	var uses []string
	for _, s := range block.List {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for _, left := range a.Lhs {
				if name := left.(*ast.Ident).Name; name != "_" {
					uses = append(uses, "_ = "+name)
				}
			}
		}
	}
	results := ""
	ast.Inspect(block, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			results = map[int]string{1: "error", 2: "(" + result + ", error)"}[len(s.Results)]
		}
		return true
	})
	return fmt.Sprintf("func block%d() %s {\n%s\n%s\npanic(0)\n}\n", n, results, body, strings.Join(uses, "\n"))
}

// compile builds a package with a text.
func compile(t *testing.T, name, text string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, 0)
	require.NoError(t, err, text)
	imports := map[string]bool{}
	for _, id := range file.Unresolved {
		if path := packages[id.Name]; path != "" {
			imports[id.Name+" "+fmt.Sprintf("%q", path)] = true
		}
	}
	var source strings.Builder
	fmt.Fprintf(&source, "package %s\nimport (\n", name)
	for line := range imports {
		fmt.Fprintln(&source, line)
	}
	fmt.Fprintf(&source, ")\n%s", text)

	folder := t.TempDir()
	path, overlay := filepath.Join(folder, "page.go"), filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(path, []byte(source.String()), 0o600))
	at, err := filepath.Abs(name)
	require.NoError(t, err)
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(at, "page.go"): path}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "-overlay", overlay, "./"+name).CombinedOutput()
	lines := strings.Split(source.String(), "\n")
	require.NoError(t, err, "%s\n%s", out, strings.Join(numbered(lines), "\n"))
}

// numbered returns lines with their numbers.
func numbered(lines []string) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = fmt.Sprintf("%3d %s", i+1, lines[i])
	}
	return lines
}
