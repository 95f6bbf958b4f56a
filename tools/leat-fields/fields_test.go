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
	"corev1": "k8s.io/api/core/v1", "equality": "k8s.io/apimachinery/pkg/api/equality",
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
