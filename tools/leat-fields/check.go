package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// generated is what a generated file holds.
type generated struct {
	paths  map[string][]string // by the full name of the type
	writes map[string]bool
}

var docPattern = "are the fields of "

// readGenerated parses a generated file.
func readGenerated(name string) (*generated, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if len(f.Comments) == 0 || f.Comments[0].List[0].Text != header {
		return nil, fmt.Errorf("%s:1:1: leat-fields did not write this file", name)
	}
	g := &generated{paths: map[string][]string{}, writes: map[string]bool{}}
	for _, c := range f.Comments {
		for _, line := range c.List {
			if write, ok := strings.CutPrefix(line.Text, "//\t"); ok {
				g.writes[write] = true
			}
		}
	}
	for _, d := range f.Decls {
		bad := fmt.Errorf("%s: not a list of fields as leat-fields writes it", set.Position(d.Pos()))
		v, ok := d.(*ast.GenDecl)
		if !ok || v.Tok != token.VAR || len(v.Specs) != 1 {
			return nil, bad
		}
		_, rest, found := strings.Cut(v.Doc.Text(), docPattern)
		typ, _, _ := strings.Cut(rest, " ")
		values := v.Specs[0].(*ast.ValueSpec).Values
		if !found || len(values) != 1 {
			return nil, bad
		}
		list, ok := values[0].(*ast.CompositeLit)
		if !ok {
			return nil, bad
		}
		g.paths[typ] = []string{}
		for _, e := range list.Elts {
			literal, ok := e.(*ast.BasicLit)
			if !ok {
				return nil, bad
			}
			path, err := strconv.Unquote(literal.Value)
			if err != nil {
				return nil, bad
			}
			g.paths[typ] = append(g.paths[typ], path)
		}
	}
	return g, nil
}

// check compares a generated file with the program. It returns the lines to print and the exit code.
func (r *report) check(name string, g *generated) (lines []string, code int) {
	known := map[string]bool{}
	for _, t := range r.types() {
		typ, fields := full(t), r.fields(t)
		known[typ] = true
		kept, ok := g.paths[typ]
		if !ok {
			lines = append(lines, fmt.Sprintf("%s has no list for %s", name, typ))
			code = 1
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			satisfied := coveredBy(kept, path) || fields[path].kind == presence &&
				slices.ContainsFunc(kept, func(k string) bool { return covers(path, k) })
			if ok && !satisfied {
				lines = append(lines, fmt.Sprintf("%s: reads %s of %s, which %s lacks", relative(fields[path].at), path, typ, name))
				code = 1
			}
		}
		for _, k := range kept {
			if _, read := fields[k]; !read {
				lines = append(lines, fmt.Sprintf("%s: nothing reads %s of %s any more", name, k, typ))
			}
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(g.paths)) {
		if !known[typ] {
			lines = append(lines, fmt.Sprintf("%s: nothing reads %s any more", name, typ))
		}
	}
	for _, e := range sortedNotes(r.writes) {
		if !g.writes[e.acknowledgement()] {
			lines = append(lines, fmt.Sprintf("%s; %s does not name it", e.write(), name))
			if code == 0 {
				code = 3
			}
		}
	}
	return lines, code
}

// packageName returns the name of the package in a folder.
func packageName(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
			if err != nil {
				return "", err
			}
			return f.Name.Name, nil
		}
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(abs)
	}
	return strings.ReplaceAll(filepath.Base(abs), "-", ""), err
}
