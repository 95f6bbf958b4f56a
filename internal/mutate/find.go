package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// mutant is one change to the code.
type mutant struct {
	id    int
	name  string // what survivors.txt calls it
	line  int
	path  string // of the file
	edits []edit
}

// edit puts text around a part of a file, or in its place.
type edit struct {
	from, to      int // offsets in the file
	before, after string
	replace       bool // drops what is between from and to
}

// finder looks for mutants in one file.
type finder struct {
	*source
	file     file
	function string
	stack    []ast.Node // from the declaration to what is being visited
	found    []*mutant
	named    map[string]int
}

// mutants returns all mutants of a package, in the order of the code.
func (s *source) mutants() []*mutant {
	var found []*mutant
	for _, f := range s.files {
		finder := &finder{source: s, file: f, named: map[string]int{}}
		for _, d := range f.Decls {
			finder.declaration(d)
		}
		found = append(found, finder.found...)
	}
	for i, m := range found {
		m.id = i + 1
	}
	return found
}

func (f *finder) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			f.function = functionName(d)
			ast.PreorderStack(d.Body, nil, f.visit)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
				f.function = v.Names[0].Name
				ast.PreorderStack(v, nil, f.visit)
			}
		}
	}
}

// functionName returns Type.Method or Function.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	return types.ExprString(receiver) + "." + d.Name.Name
}

// visit adds the mutants of one node. It reports whether there may be others below it.
func (f *finder) visit(n ast.Node, stack []ast.Node) bool {
	f.stack = stack
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.FuncType, *ast.StructType, *ast.InterfaceType:
		return false
	case *ast.IfStmt:
		f.condition(n.Cond, true, true)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond, false, true) // a loop without an end tells little, and takes long
		}
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.ReturnStmt:
		f.results(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.CallExpr:
		if f.call(n) {
			return false
		}
	case *ast.BasicLit:
		f.literal(n)
	case *ast.Ident:
		f.boolean(n)
	case ast.Stmt:
		f.statement(n)
	}
	return true
}

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

// text is the code of a node, in one line.
func (f *finder) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(f.file.content[f.offset(n.Pos()):f.offset(n.End())])), " ")
}

// lineOf is the line of the code in which a node begins.
func (f *finder) lineOf(n ast.Node) string {
	from := f.offset(n.Pos())
	begin := strings.LastIndexByte(string(f.file.content[:from]), '\n') + 1
	line, _, _ := strings.Cut(string(f.file.content[begin:]), "\n")
	return strings.TrimSpace(line)
}

// add notes a mutant of n. In the edits, %d is its number, which is not known yet.
func (f *finder) add(n ast.Node, name string, edits ...edit) {
	name = fmt.Sprintf("%s/%s %s: %s", f.name, filepath.Base(f.file.path), f.function, name)
	f.named[name]++
	if count := f.named[name]; count > 1 {
		name = fmt.Sprintf("%s (%d)", name, count)
	}
	f.found = append(f.found, &mutant{name: name, line: f.set.Position(n.Pos()).Line, path: f.file.path, edits: edits})
}

// around makes the edit that puts text around n.
func (f *finder) around(n ast.Node, before, after string) edit {
	return edit{from: f.offset(n.Pos()), to: f.offset(n.End()), before: before, after: after}
}

// basic returns the type of an expression that is no constant, if it is a predeclared one.
func (f *finder) basic(e ast.Expr) (*types.Basic, bool) {
	b, ok := types.Unalias(f.info.TypeOf(e)).(*types.Basic)
	return b, ok
}

// isConstant tells whether the compiler knows the value of an expression.
func (f *finder) isConstant(e ast.Expr) bool { return f.info.Types[e].Value != nil }
