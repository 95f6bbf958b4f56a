package archtest_test

import (
	"go/ast"
	"go/build"
	"go/types"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// calledByOthers are methods that the standard library and other modules call through their own interfaces.
var calledByOthers = strings.Fields("Error Unwrap Is As String GoString Format LogValue MarshalJSON UnmarshalJSON MarshalText " +
	"UnmarshalText Timeout Temporary MarshalLogObject ServeHTTP RoundTrip Describe Collect DeepCopyObject GetObjectKind")

// surface finds the users of exported names. It type-checks the repository from source, and imports other modules with
// foreign. The users are the code of other packages, the examples of the package itself, the tests in docs and
// examples, and the modules bench and e2e with their tests. Other tests are not users.
type surface struct {
	*source
	foreign  types.Importer
	units    map[string]*unit // by import path
	declared map[types.Object]string
	used     map[types.Object]bool
}

// unit is a package that is type-checked at once.
type unit struct {
	pkg   string // its folder
	path  string
	files []*file
	exact bool // the package of the root module itself: an error of the type checker fails the test
	tests bool // external tests of the root module
	types *types.Package
	info  *types.Info
}

// newSurface type-checks the repository.
func newSurface(s *source, foreign types.Importer) (*surface, error) {
	u := &surface{source: s, foreign: foreign, units: map[string]*unit{}, declared: map[types.Object]string{}, used: map[types.Object]bool{}}
	for _, f := range s.files {
		u.place(f)
	}
	for _, at := range slices.Sorted(maps.Keys(u.units)) {
		if err := u.check(u.units[at]); err != nil {
			return nil, err
		}
	}
	for _, p := range u.units {
		if p.exact && isPublic(p.pkg) {
			u.declare(p)
		}
	}
	for _, p := range u.units {
		u.use(p)
	}
	u.useImplementations()
	return u, nil
}

// isPublic reports whether the exported names of a package are an API of programs. Those of internal packages are not.
// Those of packages for tests are not, because their users are tests.
func isPublic(pkg string) bool {
	folders := strings.Split(pkg, "/")
	return !slices.Contains(folders, "internal") && !slices.Contains([]string{"testserver", "testkit", "cmd", "examples"}, folders[0])
}

// place adds a file to its unit, if it is one of those that count.
func (u *surface) place(f *file) {
	c := build.Default
	c.OpenFile = func(name string) (io.ReadCloser, error) { return u.fs.Open(name) }
	if match, err := c.MatchFile(f.pkg, path.Base(f.path)); err != nil || !match {
		return
	}
	at := module + "/" + f.pkg
	if strings.HasSuffix(f.Name.Name, "_test") {
		at += "_test"
	} else if f.test && !f.nested {
		return
	}
	if u.units[at] == nil {
		u.units[at] = &unit{pkg: f.pkg, path: at, exact: !f.test && !f.nested, tests: f.test && !f.nested}
	}
	u.units[at].files = append(u.units[at].files, f)
}

// check type-checks a unit, unless it was checked before.
func (u *surface) check(p *unit) error {
	if p.info != nil {
		return nil
	}
	p.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	c := types.Config{Importer: u}
	if !p.exact {
		c.Error = func(error) {} // it may lack helpers and modules
	}
	var files []*ast.File
	for _, f := range p.files {
		files = append(files, f.File)
	}
	var err error
	p.types, err = c.Check(p.path, u.set, files, p.info)
	if p.exact {
		return err
	}
	return nil
}

// Import implements types.Importer. A package that cannot be imported is empty: it belongs to a module that only bench
// or e2e require.
func (u *surface) Import(at string) (*types.Package, error) {
	if p, own := u.units[at]; own {
		err := u.check(p)
		return p.types, err
	}
	if p, err := u.foreign.Import(at); err == nil {
		return p, nil
	}
	empty := types.NewPackage(at, path.Base(at))
	empty.MarkComplete()
	return empty, nil
}

// declare records the exported names of a package: functions, types, constants and variables, the methods of types, and
// the fields of structs.
func (u *surface) declare(p *unit) {
	for _, name := range p.types.Scope().Names() {
		obj := p.types.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		u.declared[obj] = p.pkg + " " + name
		named, ok := obj.Type().(*types.Named)
		if _, isType := obj.(*types.TypeName); !isType || !ok {
			continue
		}
		for m := range named.Methods() {
			u.member(p, name, m)
		}
		switch t := named.Underlying().(type) {
		case *types.Struct:
			for f := range t.Fields() {
				if !f.Embedded() {
					u.member(p, name, f)
				}
			}
		case *types.Interface:
			for m := range t.ExplicitMethods() {
				u.member(p, name, m)
			}
		}
	}
}

func (u *surface) member(p *unit, of string, obj types.Object) {
	if obj.Exported() {
		u.declared[obj] = p.pkg + " " + of + "." + obj.Name()
	}
}

// use records the names of other packages that a unit uses.
func (u *surface) use(p *unit) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if f.counts(d) {
				ast.Inspect(d, func(n ast.Node) bool {
					if name, ok := n.(*ast.Ident); ok {
						if obj := p.info.Uses[name]; obj != nil && obj.Pkg() != p.types {
							u.mark(obj)
						}
					}
					return true
				})
			}
		}
	}
}

// counts reports whether a declaration is a user. Of the tests of this module, the soak and those in docs and examples
// are, and the functions that godoc shows.
func (f *file) counts(d ast.Decl) bool {
	top, _, _ := strings.Cut(f.pkg, "/")
	if !f.test || f.nested || f.pkg == "internal/soak" || top == "docs" || top == "examples" || strings.HasSuffix(f.path, "example_test.go") {
		return true
	}
	function, ok := d.(*ast.FuncDecl)
	return ok && strings.HasPrefix(function.Name.Name, "Example")
}

// mark records the use of a name, and of the types in its declaration.
func (u *surface) mark(obj types.Object) {
	switch o := obj.(type) {
	case *types.Func:
		obj = o.Origin()
	case *types.Var:
		obj = o.Origin()
	}
	if _, known := u.declared[obj]; !known || u.used[obj] {
		return
	}
	u.used[obj] = true
	if name, ok := obj.(*types.TypeName); ok && !name.IsAlias() {
		if named, ok := obj.Type().(*types.Named); ok {
			for p := range named.TypeParams().TypeParams() {
				u.markTypes(p.Constraint())
			}
		}
		u.markTypes(obj.Type().Underlying())
		u.markValues(obj)
		return
	}
	u.markTypes(obj.Type())
}

// markValues records the use of the constants of a type, which are the values of an enumeration.
func (u *surface) markValues(of types.Object) {
	for _, name := range of.Pkg().Scope().Names() {
		if c, ok := of.Pkg().Scope().Lookup(name).(*types.Const); ok && types.Identical(c.Type(), of.Type()) {
			u.mark(c)
		}
	}
}

// markTypes records the use of the types that a declaration names. The fields of a struct count by themselves.
func (u *surface) markTypes(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		u.mark(t.Obj())
		u.markTypes(t.Rhs())
	case *types.Named:
		u.mark(t.Obj())
		for arg := range t.TypeArgs().Types() {
			u.markTypes(arg)
		}
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			u.markTypes(p.Constraint())
		}
		for v := range t.Params().Variables() {
			u.markTypes(v.Type())
		}
		for v := range t.Results().Variables() {
			u.markTypes(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Embedded() {
				u.markTypes(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			u.mark(m)
		}
		for e := range t.EmbeddedTypes() {
			u.markTypes(e)
		}
	case *types.Map:
		u.markTypes(t.Key())
		u.markTypes(t.Elem())
	case interface{ Elem() types.Type }:
		u.markTypes(t.Elem())
	}
}

// contract is an interface of the repository.
type contract struct {
	*types.Interface
	of *types.Package
}

// useImplementations records methods that are called through an interface: an exported one, one of another package, or
// one of calledByOthers.
func (u *surface) useImplementations() {
	contracts := u.contracts()
	for obj := range u.declared {
		name, ok := obj.(*types.TypeName)
		if !ok || types.IsInterface(name.Type()) {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(name.Type()))
		for m := range methods.Methods() {
			if slices.Contains(calledByOthers, m.Obj().Name()) {
				u.mark(m.Obj())
			}
		}
		for _, c := range contracts {
			if c.of != obj.Pkg() && implements(methods, c) {
				for m := range c.Methods() {
					u.mark(methods.Lookup(c.of, m.Name()).Obj())
				}
			}
		}
	}
}

// contracts returns the interfaces of the repository. The package of an exported interface is nil.
func (u *surface) contracts() []contract {
	var all []contract
	for _, p := range u.units {
		for e, t := range p.info.Types {
			_, literal := e.(*ast.InterfaceType)
			if i, ok := t.Type.(*types.Interface); literal && ok && i.NumMethods() > 0 && !p.tests {
				all = append(all, contract{i, p.types})
			}
		}
	}
	for obj := range u.declared {
		if i, ok := obj.Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
			all = append(all, contract{i, nil})
		}
	}
	return all
}

// implements reports whether a type has the methods of an interface, with as many parameters and results. It does not
// compare their types, because either may be generic.
func implements(methods *types.MethodSet, c contract) bool {
	for m := range c.Methods() {
		found := methods.Lookup(c.of, m.Name())
		if found == nil {
			return false
		}
		have, want := found.Obj().Type().(*types.Signature), m.Signature()
		if have.Params().Len() != want.Params().Len() || have.Results().Len() != want.Results().Len() {
			return false
		}
	}
	return true
}
