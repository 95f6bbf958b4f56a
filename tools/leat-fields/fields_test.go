package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

// imports are those that a program gets if it uses their names.
var imports = map[string]string{
	"builder": "sigs.k8s.io/controller-runtime/pkg/builder", "cache": "k8s.io/client-go/tools/cache",
	"cachedclient": "github.com/leatproject/leat/cachedclient", "client": "sigs.k8s.io/controller-runtime/pkg/client",
	"context": "context", "controllerutil": "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil",
	"corev1": "k8s.io/api/core/v1", "ctrl": "sigs.k8s.io/controller-runtime", "equality": "k8s.io/apimachinery/pkg/api/equality",
	"event": "sigs.k8s.io/controller-runtime/pkg/event", "fmt": "fmt", "informer": "github.com/leatproject/leat/informer",
	"json": "encoding/json", "klog": "k8s.io/klog/v2", "labels": "k8s.io/apimachinery/pkg/labels",
	"listers": "k8s.io/client-go/listers/core/v1", "logr": "github.com/go-logr/logr", "maps": "maps",
	"meta": "k8s.io/apimachinery/pkg/api/meta", "metav1": metaPath,
	"predicate": "sigs.k8s.io/controller-runtime/pkg/predicate", "record": "k8s.io/client-go/tools/record",
	"reflect": "reflect", "runtime": "k8s.io/apimachinery/pkg/runtime", "slices": "slices", "sort": "sort",
	"sync": "sync", "template": "text/template", "typed": "k8s.io/client-go/kubernetes/typed/core/v1", "unsafe": "unsafe",
	"atomic": "sync/atomic", "time": "time", "os": "os",
}

// write unpacks an archive into a folder.
func write(t *testing.T, dir string, a *txtar.Archive) {
	t.Helper()
	for _, f := range a.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, f.Data, 0o644))
	}
}

// program adds the package clause and the imports, and names the package.
func program(name, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s; import (", name)
	for _, qualifier := range slices.Sorted(maps.Keys(imports)) {
		if used(text, qualifier) {
			fmt.Fprintf(&b, "%s %q; ", qualifier, imports[qualifier])
		}
	}
	return b.String() + ")\n" + text
}

func used(text, qualifier string) bool {
	for i := 0; ; i++ {
		at := strings.Index(text[i:], qualifier+".")
		if at < 0 {
			return false
		}
		if i += at; i == 0 || !strings.ContainsAny(text[i-1:i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") {
			return true
		}
	}
}

// libraries returns a folder with a module and the libraries that it requires.
func libraries(t *testing.T) string {
	t.Helper()
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOPROXY", "off")
	a, err := txtar.ParseFile("testdata/libraries.txtar")
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, dir, a)
	return dir
}

// TestPrograms analyses each program of programs.txtar by itself, and compares what it finds.
func TestPrograms(t *testing.T) {
	dir := libraries(t)
	a, err := txtar.ParseFile("testdata/programs.txtar")
	require.NoError(t, err)
	wanted := map[string]string{}
	for _, f := range a.Files {
		text, want, ok := strings.Cut(string(f.Data), "/* want\n")
		require.True(t, ok, f.Name)
		wanted["example.com/op/"+f.Name] = strings.TrimSuffix(want, "*/\n")
		write(t, dir, &txtar.Archive{Files: []txtar.File{{Name: f.Name + "/p.go", Data: []byte(program(f.Name, text))}}})
	}
	w, err := load(dir, []string{"./..."})
	require.NoError(t, err)
	require.Len(t, w.program, len(wanted))
	for _, p := range w.program {
		t.Run(p.Name, func(t *testing.T) {
			one := *w
			one.program = []*packages.Package{p}
			r, err := analyseProgram(&one, one.program)
			require.NoError(t, err)
			require.Equal(t, wanted[p.PkgPath], found(r))
		})
	}
}

// found formats a report as programs.txtar does: paths, and the lines of escapes and writes.
func found(r *report) string {
	var b strings.Builder
	for _, t := range r.types() {
		fields := slices.Sorted(maps.Keys(r.fields(t)))
		fmt.Fprintln(&b, strings.TrimSpace(t.Name()+" "+strings.Join(fields, " ")))
	}
	for _, e := range sortedNotes(r.escapes) {
		fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("escape %d %s %s", e.at.Line, e.root.Name(), e.path)))
	}
	for _, e := range sortedNotes(r.writes) {
		fmt.Fprintf(&b, "write %d %s\n", e.at.Line, e.root.Name())
	}
	return b.String()
}

// TestCommand writes a file, and compares it with a program that changes.
func TestCommand(t *testing.T) {
	dir := libraries(t)
	t.Chdir(dir)
	source := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(program("op", text)), 0o644))
	}
	var out, failures strings.Builder
	command := func(code int, args ...string) string {
		out.Reset()
		failures.Reset()
		require.Equal(t, code, run(args, ".", &out, &failures), out.String()+failures.String())
		return out.String() + failures.String()
	}
	const get = "func F(l listers.PodLister, c client.Client) string {\n\tp, _ := l.Get(\"x\")\n\treturn p.Labels[\"a\"]"
	source(get + "+ p.Spec.NodeName\n}")
	require.Equal(t, "k8s.io/api/core/v1.Pod\n\tmetadata.labels[\"a\"]  p.go:4:17\n\tspec.nodeName         p.go:4:31\n",
		command(0, "./..."))
	require.Empty(t, command(0, "-o", "fields.go"))
	written, err := os.ReadFile("fields.go")
	require.NoError(t, err)
	require.Equal(t, header+`

package op

// PodFields are the fields of k8s.io/api/core/v1.Pod that this program reads.
var PodFields = []string{
	"metadata.labels[\"a\"]",
	"spec.nodeName",
}
`, string(written))
	require.Empty(t, command(0, "-check", "fields.go"))

	source(get + "+ string(p.Status.Phase)\n}")
	require.Equal(t, "p.go:4:40: reads status.phase of k8s.io/api/core/v1.Pod, which fields.go lacks\n"+
		"fields.go: nothing reads spec.nodeName of k8s.io/api/core/v1.Pod any more\n", command(1, "-check", "fields.go"))
	source("func F(s *corev1.Secret) string { return s.Type }")
	require.Equal(t, "fields.go has no list for k8s.io/api/core/v1.Secret\n"+
		"fields.go: nothing reads k8s.io/api/core/v1.Pod any more\n", command(1, "-check", "fields.go"))

	const updates = get + "\n}\n\nfunc U(c client.Client, p *corev1.Pod) { _ = c.Update(context.Background(), p) }"
	source(updates)
	require.Contains(t, command(3, "-check", "fields.go"), "p.go:7:54: k8s.io/api/core/v1.Pod is passed to client.Writer.Update")
	command(0, "-o", "fields.go")
	require.Empty(t, command(0, "-check", "fields.go"))

	for name, c := range map[string]struct {
		file, text string
		args       []string
		want       string
	}{
		"foreign file":    {"other.go", "package op\n", []string{"-check", "other.go"}, "other.go:1:1: leat-fields did not write"},
		"changed file":    {"other.go", header + "\n\npackage op\n\nfunc F2() {}\n", []string{"-check", "other.go"}, "other.go:5:1: not a list"},
		"no file":         {"other.go", "package op\n", []string{"-check", "none.go"}, "none.go"},
		"type error":      {"other.go", "package op\n\nvar x int = \"\"\n", nil, "other.go:3:13: "},
		"syntax error":    {"other.go", "package op\n\nfunc {\n", nil, "other.go:3:6: "},
		"unknown pattern": {"other.go", "package op\n", []string{"./none"}, "none: "},
		"no package":      {"other.go", "package op\n", []string{"./none/..."}, "pattern ./none/..."},
		"both flags":      {"other.go", "package op\n", []string{"-o", "a", "-check", "b"}, "-o conflicts with -check"},
		"unknown path": {
			"other.go", program("op", "func G(p *corev1.Pod) {\n\tfmt.Println(p) //leat:fields spec.none\n}\n"), nil,
			"other.go:3:17: k8s.io/api/core/v1.Pod has no field spec.none",
		},
	} {
		require.NoError(t, os.WriteFile(c.file, []byte(c.text), 0o644))
		message := command(2, c.args...)
		require.Contains(t, message, c.want, name)
		require.Equal(t, 1, strings.Count(message, "\n"), name)
		require.NoError(t, os.Remove(c.file))
	}
}
