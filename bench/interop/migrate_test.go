package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"

	// The page uses these packages, so that go.mod must require what they need.
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	_ "github.com/leatproject/leat/adapter/clientgo"
	_ "github.com/leatproject/leat/adapter/clientgo/queue"
	_ "github.com/leatproject/leat/adapter/clientgo/restconfig"
	_ "github.com/leatproject/leat/adapter/leatcache"
)

// sides are the libraries whose code docs/migrate.md shows: the first line of each block names one. given are the
// variables that the blocks use without declaring them.
var sides = map[string]struct{ given, result, start string }{
	"client-go": {result: "struct{}", start: `
	config = &rest.Config{Host: os.Args[2]}
	clientset = kubernetes.NewForConfigOrDie(config)
	work = func(context.Context) { end() }
`, given: `
var (
	config *rest.Config
	clientset kubernetes.Interface
	listWatch cache.ListerWatcher
	indexer cache.Indexer
	queue workqueue.TypedRateLimitingInterface[string]
	sync func(context.Context, string) error
	work func(context.Context)
	gone func(*corev1.Pod)
	set, pod struct{}
)`},
	"controller-runtime": {result: "reconcile.Result", start: `
	reconciler = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { end(); return reconcile.Result{}, nil })
	scheme = clientgoscheme.Scheme
	ctrl.SetLogger(klog.Background())
	set.Name, set.Namespace, set.UID, pod.Namespace = "bread", "shop", "1", "shop"
`, given: `
var (
	config *rest.Config
	reconciler reconcile.Reconciler
	request reconcile.Request
	reader client.Reader
	writer client.Client
	scheme *runtime.Scheme
	set appsv1.ReplicaSet
	pod corev1.Pod
	mgr ctrlmanager.Manager
	bake func(context.Context) error
	everywhere ctrlmanager.Runnable
)`},
	"leat": {result: "leatcontroller.Result", start: `
	client, _ = apiclient.New(apiclient.Config{Host: os.Args[2]})
	podsResource = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	replicaSetsResource = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	pods = apiclient.NewTyped[*corev1.Pod](client, podsResource, "")
	work = func(context.Context) { end() }
	leatReconciler = leatcontroller.Func[api.Key](func(context.Context, api.Key) (leatcontroller.Result, error) { end(); return leatcontroller.Result{}, nil })
	set.Name, set.Namespace, set.UID, pod.Namespace = "bread", "shop", "1", "shop"
`, given: `
var (
	config *rest.Config
	clientset kubernetes.Interface
	listWatch cache.ListerWatcher
	client *apiclient.Client
	podsResource, replicaSetsResource api.Resource
	pods *apiclient.TypedClient[*corev1.Pod]
	podInformerOfLeat *informer.Informer[*corev1.Pod]
	leatReconciler leatcontroller.Reconciler[api.Key]
	request reconcile.Request
	cachedPods *cachedclient.Partial[*corev1.Pod]
	sets *cachedclient.Typed[*appsv1.ReplicaSet]
	sync func(context.Context, string) error
	work func(context.Context)
	gone func(*corev1.Pod)
	set appsv1.ReplicaSet
	pod corev1.Pod
	p *program.Program
	bake, serve func(context.Context) error
	everywhere manager.Runnable
)`},
}

// packages are the imports of the blocks by name.
var packages = map[string]string{
	"context": "context", "time": "time", "os": "os", "json": "encoding/json",
	"api": leat("api"), "apiclient": leat("apiclient"), "informer": leat("informer"), "packed": leat("scale/packed"), "program": leat("program"),
	"manager": leat("manager"), "owner": leat("reconcile/owner"), "conditions": leat("reconcile/conditions"), "cachedclient": leat("cachedclient"),
	"leatcontroller": leat("controller"), "leatelection": leat("manager/leaderelection"),
	"runtimecache": leat("adapter/leatcache"), "runtimeclient": "sigs.k8s.io/controller-runtime/pkg/client",
	"clientgo": leat("adapter/clientgo"), "restconfig": leat("adapter/clientgo/restconfig"), "leatqueue": leat("adapter/clientgo/queue"),
	"appsv1": "k8s.io/api/apps/v1", "corev1": "k8s.io/api/core/v1",
	"metav1": "k8s.io/apimachinery/pkg/apis/meta/v1", "labels": "k8s.io/apimachinery/pkg/labels",
	"runtime": "k8s.io/apimachinery/pkg/runtime", "apierrors": "k8s.io/apimachinery/pkg/api/errors",
	"kubernetes": "k8s.io/client-go/kubernetes", "informers": "k8s.io/client-go/informers", "rest": "k8s.io/client-go/rest",
	"listers": "k8s.io/client-go/listers/core/v1", "cache": "k8s.io/client-go/tools/cache", "workqueue": "k8s.io/client-go/util/workqueue",
	"leaderelection": "k8s.io/client-go/tools/leaderelection", "resourcelock": "k8s.io/client-go/tools/leaderelection/resourcelock",
	"ctrl": "sigs.k8s.io/controller-runtime", "controller": "sigs.k8s.io/controller-runtime/pkg/controller",
	"runtimescope": "sigs.k8s.io/controller-runtime/pkg/cache", "metricsserver": "sigs.k8s.io/controller-runtime/pkg/metrics/server",
	"ctrlmanager": "sigs.k8s.io/controller-runtime/pkg/manager", "klog": "k8s.io/klog/v2", "clientgoscheme": "k8s.io/client-go/kubernetes/scheme",
	"client": "sigs.k8s.io/controller-runtime/pkg/client", "reconcile": "sigs.k8s.io/controller-runtime/pkg/reconcile",
	"controllerutil": "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil",
}

func leat(name string) string { return "github.com/leatproject/leat/" + name }

var block = regexp.MustCompile("(?s)```go\n// ([a-z-]+)\n(.*?)```")

// example is a block of the page: a piece of code for one library.
type example struct {
	n          int
	side, code string
}

func (e example) name() string { return fmt.Sprintf("block%d", e.n) }

// examples returns the blocks of docs/migrate.md.
func examples(t *testing.T) (all []example) {
	t.Helper()
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "migrate.md")))(t)
	for i, b := range block.FindAllSubmatch(page, -1) {
		require.Contains(t, sides, string(b[1]))
		all = append(all, example{i, string(b[1]), string(b[2])})
	}
	require.Len(t, all, bytes.Count(page, []byte("```go\n")), "each block begins with the name of a library")
	return all
}

// pair is a block of another library and the block of leat that follows it.
type pair struct{ other, leat example }

func pairs(t *testing.T) (all []pair) {
	t.Helper()
	blocks := examples(t)
	for i, b := range blocks {
		if b.side == "leat" {
			continue
		}
		require.Less(t, i+1, len(blocks), b.code)
		require.Equal(t, "leat", blocks[i+1].side, "after %s", b.code)
		all = append(all, pair{b, blocks[i+1]})
	}
	require.NotEmpty(t, all)
	return all
}

// TestMigrationPairsDoTheSame compiles every block of docs/migrate.md, and runs both sides of the pairs that send
// requests or change an object, each against a server of its own. Both sides must read and write the same collections
// with the same selectors, leave the same Leases, and change the object in the same way.
func TestMigrationPairsDoTheSame(t *testing.T) {
	built, all := programs(t), pairs(t)
	for _, distinct := range []string{
		`Pods("shop").Get(`, `informers.WithNamespace`, `leaderelection.RunOrDie`, `LeaderElection: true`, `SetControllerReference`,
	} {
		t.Run(distinct, func(t *testing.T) {
			i := slices.IndexFunc(all, func(p pair) bool { return strings.Contains(p.other.code, distinct) })
			require.GreaterOrEqual(t, i, 0)
			theirs, ours := effects(t, built, all[i].other), effects(t, built, all[i].leat)
			require.NotEmpty(t, theirs)
			require.Equal(t, theirs, ours, "%s\n%s", all[i].other.code, all[i].leat.code)
			if strings.Contains(strings.ToLower(distinct), "leaderelection") {
				require.Contains(t, ours, "the lease shop/baker of 15 s")
			}
		})
	}
}

// effects runs a block and returns what it did.
func effects(t *testing.T, built map[string]string, e example) (all []string) {
	t.Helper()
	s := testserver.New(testserver.Options{RequestLog: 1000})
	listener := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer fixture.Start(t, func(ctx context.Context) error { return s.Serve(ctx, listener) })()
	for r, o := range map[string]runtimeObject{
		"pods":        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}},
		"replicasets": &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bread"}},
	} {
		must.Get(s.Create(seeded[r], o))(t)
	}

	server := frontFor(t, "http://"+listener.Addr().String())
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"kind": "Config", "apiVersion": "v1", "current-context": "a",
"clusters": [{"name": "a", "cluster": {"server": %q}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"users": [{"name": "a", "user": {}}]}`, server), 0o600))
	patience, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	program := exec.CommandContext(patience, built[e.side], strconv.Itoa(e.n), server)
	program.Env = append(os.Environ(), "KUBECONFIG="+config)
	var log bytes.Buffer
	program.Stderr = &log
	out, err := program.Output()
	require.NoError(t, err, "%s\n%s", e.code, &log)

	if o := string(out); !strings.Contains(o, `"pod":{}`) && strings.Contains(o, `"ownerReferences"`) {
		all = append(all, o)
	}
	for _, r := range s.Requests() {
		if r.Resource == "" || r.Resource == "events" { // discovery; client-go's elector writes an Event
			continue
		}
		verb := "writes"
		if slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			verb = "reads"
		}
		all = append(all, fmt.Sprintf("%s %s in %q, selected by %q", verb, r.Resource, r.Namespace, r.Query.Get("labelSelector")))
	}
	held := must.Get(s.List(leases, ""))(t)
	for _, l := range held {
		seconds, _, err := unstructured.NestedInt64(l.Object, "spec", "leaseDurationSeconds")
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("the lease %s/%s of %d s", l.GetNamespace(), l.GetName(), seconds))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// frontFor returns the address of a server in front of one that reads no protobuf. client-go's elector sends protobuf,
// whatever its configuration says.
func frontFor(t *testing.T, address string) string {
	t.Helper()
	to := must.Get(url.Parse(address))(t)
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if r.In.Header.Get("Content-Type") != runtime.ContentTypeProtobuf {
			return
		}
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return // the client has ended
		}
		if o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); assert.NoError(t, err) {
			body, err = json.Marshal(o)
			assert.NoError(t, err)
		}
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Out.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}})
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

type runtimeObject interface {
	api.Object
	runtime.Object
}

// seeded are the resources of the objects that the server has when a block begins.
var seeded = map[string]api.Resource{
	"pods":        {Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
	"replicasets": {Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true},
}

// equivalents has each option and each With function of the other library that the page shows, and the option or the
// function of leat that means the same. "!X" means that the other library's default is different: leat's side must not
// set X.
var equivalents = map[string]string{
	"WithNamespace": "NewTyped", "WithTweakListOptions": "Labels", "DeleteFunc": "DeleteFunc", "Identity": "Identity",
	"Lock": "Name", "LeaseDuration": "LeaseDuration", "RenewDeadline": "RenewDeadline", "RetryPeriod": "RetryPeriod",
	"ReleaseOnCancel": "!KeepLease", "OnStartedLeading": "Run", "OnStoppedLeading": "Run",
	"LeaderElection": "Lease", "LeaderElectionNamespace": "Lease", "LeaderElectionID": "Lease",
	"LeaderElectionReleaseOnCancel": "!KeepLease", "DefaultNamespaces": "Namespace", "BindAddress": "Address",
	"MaxConcurrentReconciles": "MaxConcurrentReconciles", "RequeueAfter": "RequeueAfter",
}

// own are the options of leat that no option of the other library corresponds to: names, the types of resources, the
// options that put leat below the other library, and those that are arguments of a lister there.
var own = []string{
	"Name", "Group", "Version", "Kind", "Plural", "Namespaced", "NewCache", "NewQueue", "Namespace", "Manager", "Selector", "Namespaces", "Labels",
}

// TestMigrationPairsHaveTheSameOptions checks that each option on one side has its equivalent on the other side, with
// the same texts and numbers.
func TestMigrationPairsHaveTheSameOptions(t *testing.T) {
	for _, p := range pairs(t) {
		theirs, ours := options(t, p.other.code), options(t, p.leat.code)
		means := map[string]bool{}
		for name, o := range theirs {
			if !o.set && !strings.HasPrefix(name, "With") {
				continue
			}
			to, known := equivalents[name]
			require.True(t, known, "add %s to the equivalents:\n%s", name, p.other.code)
			if unset, not := strings.CutPrefix(to, "!"); not {
				require.NotContains(t, ours, unset)
				continue
			}
			require.Contains(t, ours, to, "of %s in\n%s", name, p.leat.code)
			require.Subset(t, ours[to].literals, o.literals, "%s and %s in\n%s", name, to, p.leat.code)
			means[to] = true
		}
		for name, o := range ours {
			if o.set && !slices.Contains(own, name) {
				require.True(t, means[name], "the other side has no %s:\n%s", name, p.other.code)
			}
		}
	}
}

// option is a field of a composite literal (then set is true) or a function that is called.
type option struct {
	set      bool
	literals []string // in its value or its arguments
}

// options returns the options that a block sets and the functions that it calls.
func options(t *testing.T, code string) map[string]option {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+code+"\n}", 0)
	require.NoError(t, err, code)
	found := map[string]option{}
	add := func(name string, set bool, values ...ast.Expr) {
		o := found[name]
		o.set = o.set || set
		for _, v := range values {
			ast.Inspect(v, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok {
					o.literals = append(o.literals, l.Value)
				}
				return true
			})
		}
		found[name] = o
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			name, isName := n.Key.(*ast.Ident)
			if c, ok := n.Value.(*ast.CompositeLit); isName && (!ok || len(c.Elts) == 0 || !nests(c) || name.Name == "Lease") {
				add(name.Name, true, n.Value)
				return !ok
			}
		case *ast.CallExpr:
			f := n.Fun
			if i, ok := f.(*ast.IndexExpr); ok {
				f = i.X
			}
			if s, ok := f.(*ast.SelectorExpr); ok {
				add(s.Sel.Name, false, n.Args...)
			}
		}
		return true
	})
	return found
}

// nests reports whether a literal sets options of its own.
func nests(c *ast.CompositeLit) bool {
	return slices.ContainsFunc(c.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		_, ok = kv.Key.(*ast.Ident)
		return ok
	})
}

// programs builds a program of each library. Its arguments are the number of the block to run, and the address of a
// server. It ends when the block returns, or when the block has called the function that is its work.
func programs(t *testing.T) map[string]string {
	t.Helper()
	code, cases := map[string]*strings.Builder{}, map[string]*strings.Builder{}
	for _, e := range examples(t) {
		if code[e.side] == nil {
			code[e.side], cases[e.side] = &strings.Builder{}, &strings.Builder{}
		}
		text, results := function(t, e)
		fmt.Fprintln(code[e.side], text)
		call := []string{"%s(); return nil", "return %s()", "_, err := %s(); return err"}[results]
		fmt.Fprintf(cases[e.side], "case \"%d\": "+call+"\n", e.n, e.name())
	}
	require.Len(t, code, len(sides))
	built := map[string]string{}
	for side, functions := range code {
		built[side] = compile(t, strings.ReplaceAll(side, "-", ""),
			fmt.Sprintf(frame, sides[side].given, sides[side].start, cases[side], functions))
	}
	return built
}

// frame is a program around blocks.
const frame = `%s
var ctx = context.Background()

func start() {%s}

func run() error {
	switch os.Args[1] {
	%s}
	return nil
}

func main() {
	defer func() {
		if v := recover(); v != nil && v != over {
			panic(v)
		}
		end()
	}()
	start()
	if err := run(); err != nil {
		panic(err)
	}
}

var over any = "the end of a block"

func end() {
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"set": &set, "pod": &pod})
	os.Exit(0)
}

%s`

// function returns a function with a block as its body, and the number of its results. Variables that the block
// declares count as used.
func function(t *testing.T, e example) (text string, results int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+e.code+"\n}", 0)
	require.NoError(t, err, e.code)
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
	ast.Inspect(block, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			results = len(s.Results)
		}
		return true
	})
	result := []string{"", "error", "(" + sides[e.side].result + ", error)"}[results]
	code := strings.ReplaceAll(e.code, `":8080"`, `"127.0.0.1:0"`) // another program may have the port
	return fmt.Sprintf("func %s() %s {\n%s\n%s\npanic(over)\n}\n", e.name(), result, code, strings.Join(uses, "\n")), results
}

// compile builds a program from a text, which exists only in an overlay of the go command.
func compile(t *testing.T, name, text string) (program string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+text, 0)
	require.NoError(t, err, text)
	imports := map[string]bool{}
	for _, id := range file.Unresolved {
		if path := packages[id.Name]; path != "" {
			imports[id.Name+" "+fmt.Sprintf("%q", path)] = true
		}
	}
	var source strings.Builder
	fmt.Fprint(&source, "package main\nimport (\n")
	for line := range imports {
		fmt.Fprintln(&source, line)
	}
	fmt.Fprintf(&source, ")\n%s", text)

	folder := t.TempDir()
	path, overlay := filepath.Join(folder, "page.go"), filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(path, []byte(source.String()), 0o600))
	at := must.Get(filepath.Abs(name))(t)
	replace := must.Get(json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(at, "page.go"): path}}))(t)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	program = filepath.Join(folder, "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-overlay", overlay, "./"+name).CombinedOutput()
	lines := strings.Split(source.String(), "\n")
	require.NoError(t, err, "%s\n%s", out, strings.Join(numbered(lines), "\n"))
	return program
}

// numbered returns lines with their numbers.
func numbered(lines []string) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = fmt.Sprintf("%3d %s", i+1, lines[i])
	}
	return lines
}
