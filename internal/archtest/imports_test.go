package archtest_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// forbiddenNames are names of packages that say nothing about their content.
var forbiddenNames = strings.Fields("util utils common helper helpers misc base shared")

// checkImports finds imports that the table does not allow, and packages that are not in the table.
func checkImports(s *source) []finding {
	var found []finding
	unknown := map[string]bool{}
	for f := range s.own {
		if slices.Contains(forbiddenNames, path.Base(f.pkg)) {
			found = append(found, s.at(f, f.Package, "a package called %s is a dumping ground; name it after what it is", path.Base(f.pkg)))
		}
		l, known := layerOf(f.pkg)
		if !known && !unknown[f.pkg] {
			unknown[f.pkg] = true
			found = append(found, s.at(f, f.Package, "package %s is not in the table of internal/archtest/table_test.go; "+
				"give it a row there that says what it may import, and one in the design", f.pkg))
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				imported = spec.Path.Value
			}
			if reason := objection(f, l, known, imported); reason != "" {
				found = append(found, s.at(f, spec.Pos(), "%s", reason))
			}
		}
	}
	return found
}

// objection returns the reason against an import, or "".
func objection(f *file, l layer, known bool, imported string) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		if known && !matches(strings.Fields(l.mayImport), own) {
			allowed := l.mayImport
			if allowed == "" {
				allowed = "nothing of leat"
			}
			return f.pkg + " may not import " + own + "; the table in internal/archtest/table_test.go allows it " + allowed
		}
		return ""
	}
	for _, c := range confined {
		if within(imported, c.packages) && !matches(strings.Fields(c.mayImport), f.pkg) {
			allowed := "only " + c.mayImport + " may"
			if c.mayImport == "" {
				allowed = "nothing in this repository may"
			}
			return f.pkg + " may not import " + imported + "; " + allowed
		}
	}
	if slices.Contains(knowsNothingOfKubernetes, f.pkg) && strings.Contains(imported, "k8s.io/") {
		return f.pkg + " may not import " + imported + "; it knows nothing of Kubernetes"
	}
	return ""
}

// checkStyle finds constructs that the design forbids.
func checkStyle(s *source) []finding {
	var found []finding
	for _, f := range s.files {
		if f.test {
			found = append(found, s.checkSleep(f)...)
		}
	}
	for f := range s.own {
		if lines := s.set.File(f.Package).LineCount(); lines > maxFileLines {
			found = append(found, finding{f.path, maxFileLines, "a file of " + strconv.Itoa(lines) +
				" lines; more than " + strconv.Itoa(maxFileLines) + " are more than one thing"})
		}
		for _, d := range f.Decls {
			found = append(found, s.checkDecl(f, d)...)
		}
	}
	return found
}

const (
	maxFileLines     = 500
	maxFunctionLines = 60
)

func (s *source) checkDecl(f *file, d ast.Decl) []finding {
	var found []finding
	if fn, ok := d.(*ast.FuncDecl); ok {
		if fn.Name.Name == "init" && fn.Recv == nil {
			found = append(found, s.at(f, fn.Pos(), "an init function; packages have no state of their own"))
		}
		if lines := s.set.Position(fn.End()).Line - s.set.Position(fn.Pos()).Line + 1; lines > maxFunctionLines {
			found = append(found, s.at(f, fn.Pos(), "%s has %d lines; %d are the most", fn.Name.Name, lines, maxFunctionLines))
		}
		return found
	}
	ast.Inspect(d, func(n ast.Node) bool {
		t, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range t.Fields.List {
			if isSelector(field.Type, "context", "Context") {
				found = append(found, s.at(f, field.Pos(), "a context in a struct; pass it to the call that it is for"))
			}
		}
		return true
	})
	return found
}

// checkSleep finds tests that wait for time to pass.
func (s *source) checkSleep(f *file) []finding {
	var found []finding
	ast.Inspect(f.File, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && isSelector(e, "time", "Sleep") {
			found = append(found, s.at(f, n.Pos(), "time.Sleep in a test; wait for what is to happen, or use a synctest bubble"))
		}
		return true
	})
	return found
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
