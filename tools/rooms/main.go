// Command rooms changes the imports of leat's packages from their paths in v0.1.0 to those of today. It changes the Go
// files in a folder and below it, also names of packages that changed: "status.Set" becomes "conditions.Set". It prints
// the files that it changed. Run it a second time, and it changes nothing.
//
// Usage: rooms folder
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/leatproject/leat/"

// moves has the old and the new path of each package that moved. A package below an old path moves with it. The longest
// paths come first.
var moves = []move{
	{"adapter/controllerruntime", "adapter/leatcache", "leatcache"},
	{"shard/hashrange", "api/hashrange", "hashrange"},
	{"shard/cut", "scale/shardedsource", "cut"},
	{"owner", "reconcile/owner", "owner"},
	{"expectations", "reconcile/expectations", "expectations"},
	{"await", "reconcile/await", "await"},
	{"recorder", "reconcile/events", "recorder"},
	{"status", "reconcile/conditions", "status"},
	{"scopes", "scale/scopes", "scopes"},
	{"shard", "scale/shard", "shard"},
	{"packed", "scale/packed", "packed"},
	{"warmstart", "scale/warmstart", "warmstart"},
	{"fleet", "scale/stagger", "fleet"},
	{"consistency", "scale/driftcheck", "consistency"},
	{"clusters", "scale/multicluster", "clusters"},
	{"recording", "observe/recording", "recording"},
	{"livepage", "observe/livepage", "livepage"},
	{"leaderelection", "manager/leaderelection", "leaderelection"},
	{"accessreview", "manager/accessreview", "accessreview"},
	{"zapslog", "adapter/zapslog", "zapslog"},
}

// move is the move of a package. Its new name is the last element of its new path.
type move struct{ from, to, name string }

func (m move) newName() string { return path.Base(m.to) }

func (m move) renamed() bool { return m.newName() != m.name }

// moveOf returns the move of a path below the module, and the new path.
func moveOf(at string) (m move, to string, ok bool) {
	for _, m := range moves {
		if rest, below := strings.CutPrefix(at+"/", m.from+"/"); below {
			return m, strings.TrimSuffix(m.to+"/"+rest, "/"), true
		}
	}
	return move{}, at, false
}

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: rooms folder")
		os.Exit(2)
	}
	if err := changeImports(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

// changeImports changes the Go files of a folder and of those below it.
func changeImports(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case name != root && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_'):
			return fs.SkipDir
		}
		return changeFolder(name)
	})
}

// changeFolder changes the Go files of one folder.
func changeFolder(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	set, files := token.NewFileSet(), map[string]*ast.File{}
	declared := map[[2]string]bool{} // packages and what they declare
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files[name] = file
		for declaredName := range file.Scope.Objects {
			declared[[2]string{file.Name.Name, declaredName}] = true
		}
	}
	for _, name := range names {
		before, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		after, err := changeFile(set, files[name], before, declared)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(before, after) {
			continue
		}
		fmt.Println(name)
		if err := os.WriteFile(name, after, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

// changeFile returns the content of a file with new imports. A renamed package keeps its old name, as the name of the
// import, where the file uses the new name for something else.
func changeFile(set *token.FileSet, file *ast.File, content []byte, declared map[[2]string]bool) ([]byte, error) {
	var edits []edit
	replace := func(n ast.Node, text string) {
		edits = append(edits, edit{set.Position(n.Pos()).Offset, set.Position(n.End()).Offset, text})
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		at, own := strings.CutPrefix(imported, module)
		m, to, moved := moveOf(at)
		if !own || !moved {
			continue
		}
		text := strconv.Quote(module + to)
		if spec.Name != nil && at == m.from && spec.Name.Name == m.newName() {
			replace(spec, text)
			continue
		}
		if spec.Name == nil && at == m.from && m.renamed() {
			uses := usesOf(file, m.name)
			if declared[[2]string{file.Name.Name, m.newName()}] || isTaken(file, m.newName(), uses) {
				text = m.name + " " + text
			} else {
				for _, use := range uses {
					replace(use, m.newName())
				}
			}
		}
		replace(spec.Path, text)
	}
	if len(edits) == 0 {
		return content, nil
	}
	formatted, _ := format.Source(content)
	wasFormatted := bytes.Equal(content, formatted)
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		content = slices.Concat(content[:e.from], []byte(e.text), content[e.to:])
	}
	if !wasFormatted {
		return content, nil
	}
	return format.Source(content)
}

// usesOf returns the uses of an imported package. A local variable of the same name is no use.
func usesOf(file *ast.File, name string) (uses []*ast.Ident) {
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := selector.X.(*ast.Ident); ok && id.Name == name && id.Obj == nil {
				uses = append(uses, id)
			}
		}
		return true
	})
	return uses
}

// isTaken reports whether a file imports another package of a name, or has a local name that hides the package.
func isTaken(file *ast.File, name string, uses []*ast.Ident) bool {
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(imported) == name {
			return true
		}
	}
	return hides(file, name, uses)
}

// hides reports whether a local name hides the package at one of its uses.
func hides(file *ast.File, name string, uses []*ast.Ident) (hidden bool) {
	ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || id.Name != name || id.Obj == nil || id.Obj.Pos() != id.Pos() {
			return true
		}
		from, to := scopeOf(id, stack)
		for _, use := range uses {
			hidden = hidden || from <= use.Pos() && use.Pos() < to
		}
		return true
	})
	return hidden
}

// scopeOf returns where a declared name holds: from the end of its declaration to the end of the block. The stack has
// the nodes around the name. The names of fields hold nowhere. changeFolder knows the names of the package.
func scopeOf(id *ast.Ident, stack []ast.Node) (from, to token.Pos) {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.StructType, *ast.InterfaceType:
			return token.NoPos, token.NoPos
		case *ast.AssignStmt, *ast.ValueSpec, *ast.TypeSpec:
			from = max(from, n.End())
		case *ast.RangeStmt:
			return n.Body.Pos(), n.End()
		case *ast.FuncDecl:
			if n.Body == nil || n.Name.Pos() == id.Pos() {
				return token.NoPos, token.NoPos
			}
			return max(from, n.Body.Pos()), n.End()
		case *ast.FuncLit:
			return max(from, n.Body.Pos()), n.End()
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.IfStmt, *ast.ForStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
			return max(from, n.Pos()), n.End()
		}
	}
	return token.NoPos, token.NoPos
}
