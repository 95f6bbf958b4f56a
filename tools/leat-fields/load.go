package main

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const metaPath = "k8s.io/apimachinery/pkg/apis/meta/v1"

// world is a program in SSA form. Functions of the packages that the analysis follows have bodies, others have none.
type world struct {
	set      *token.FileSet
	prog     *ssa.Program
	program  []*packages.Package // those that the patterns match
	all      []*types.Package    // and everything that they import
	followed map[*types.Package]bool
}

// neverFollowed are packages whose functions deliver, send or store objects. The analysis knows them by summaries.
var neverFollowed = []string{
	"k8s.io/api/", "k8s.io/client-go/", "k8s.io/apiserver/", "k8s.io/kube-openapi/", "k8s.io/apiextensions-apiserver/",
	"k8s.io/apimachinery/pkg/runtime/", "k8s.io/apimachinery/pkg/watch/", "k8s.io/apimachinery/pkg/util/",
	"k8s.io/component-base/", "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/", "sigs.k8s.io/controller-runtime/", "sigs.k8s.io/structured-merge-diff/",
	"github.com/leatproject/leat/",
}

// alwaysFollowed are packages below these that only compute, and generic ones of the standard library.
var alwaysFollowed = []string{
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil/", "sigs.k8s.io/controller-runtime/pkg/predicate/",
	"github.com/leatproject/leat/reconcile/", "github.com/leatproject/leat/examples/", "github.com/leatproject/leat/predicate/", "k8s.io/client-go/util/retry/",
	"slices/", "maps/", "iter/", "sort/", "cmp/", "k8s.io/utils/ptr/", "k8s.io/client-go/util/podutils/", "github.com/samber/lo/",
}

func follows(p *packages.Package, usesAPI map[string]bool) bool {
	below := func(prefix string) bool { return strings.HasPrefix(p.PkgPath+"/", prefix) }
	return slices.ContainsFunc(alwaysFollowed, below) || usesAPI[p.PkgPath] && !slices.ContainsFunc(neverFollowed, below)
}

// load reads the packages that the patterns match, and those that the analysis follows, from their sources. It reads
// all others from the compiler's export data, which takes a fraction of the time and memory.
func load(dir string, patterns []string, env ...string) (*world, error) {
	c := &packages.Config{Dir: dir, Env: env, Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedFiles}
	matched, err := packages.Load(c, patterns...)
	if err != nil {
		return nil, err
	}
	if err := firstError(matched); err != nil {
		return nil, err
	}
	isProgram, usesAPI, paths := map[string]bool{}, map[string]bool{metaPath: true}, []string{}
	for _, p := range matched {
		isProgram[p.PkgPath] = true
	}
	packages.Visit(matched, nil, func(p *packages.Package) {
		for path := range p.Imports {
			usesAPI[p.PkgPath] = usesAPI[p.PkgPath] || usesAPI[path]
		}
	})
	// A package counts only if one that is followed imports it, because nothing else can call it with a known value.
	packages.Visit(matched, func(p *packages.Package) bool {
		ok := isProgram[p.PkgPath] || follows(p, usesAPI)
		if ok {
			paths = append(paths, p.PkgPath)
		}
		return ok
	}, nil)
	if len(matched) == 0 {
		return nil, fmt.Errorf("%s match no package", strings.Join(patterns, " "))
	}

	w := &world{set: token.NewFileSet(), followed: map[*types.Package]bool{}}
	c.Mode, c.Fset = packages.LoadSyntax, w.set
	loaded, err := packages.Load(c, paths...)
	if err != nil {
		return nil, err
	}
	if err := firstError(loaded); err != nil {
		return nil, err
	}
	for _, p := range loaded {
		w.followed[p.Types] = true
		if isProgram[p.PkgPath] {
			w.program = append(w.program, p)
		}
	}
	w.prog, _ = ssautil.Packages(loaded, ssa.InstantiateGenerics)
	w.prog.Build()
	seen := map[*types.Package]bool{}
	var visit func(*types.Package)
	visit = func(p *types.Package) {
		if !seen[p] {
			seen[p] = true
			for _, i := range p.Imports() {
				visit(i)
			}
			w.all = append(w.all, p)
		}
	}
	for _, p := range loaded {
		visit(p.Types)
	}
	return w, nil
}

// firstError returns the first error of the packages. One with a position comes before those that go list reports, and
// these may have several lines.
func firstError(loaded []*packages.Package) (first error) {
	listed := true
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if first == nil || listed && e.Kind != packages.ListError {
				lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(e.Error(), "-: ")), "\n")
				first, listed = errors.New(lines[len(lines)-1]), e.Kind == packages.ListError
			}
		}
	})
	return first
}
