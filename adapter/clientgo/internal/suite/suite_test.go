package suite

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// tests are test files of one package of client-go, and how they are changed.
type tests struct {
	name  string
	from  string   // the package, relative to the module
	files []string // of that package
	// imports replaces imports. An import of client-go's own package makes the tests of that package external.
	imports map[string]string
	rename  map[string]string // identifiers
	drop    map[string]string // functions that cannot be compiled without the internals of client-go, with the reason
	support string            // another file of the test package
	skip    map[string]string // tests that would block, with the reason
	fail    map[string]string // tests that fail, with the reason
}

// run runs the tests. A test in fail must fail, and every other one must pass.
func (s tests) run(t *testing.T) {
	t.Helper()
	dir := must.Get(filepath.Abs(s.name))(t)
	require.NoDirExists(t, dir, "the overlay needs a folder that does not exist")
	scratch := t.TempDir()
	replace := map[string]string{}
	put := func(name string, content []byte) {
		path := filepath.Join(scratch, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		replace[filepath.Join(dir, name)] = path
	}
	for _, file := range s.files {
		put(file, s.rewrite(t, filepath.Join(moduleDir(t), s.from, file)))
	}
	put("support_test.go", []byte(s.support))
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	overlayFile := filepath.Join(scratch, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	results, output := goTest(t, scratch, overlayFile, s.name, s.skip)
	s.judge(t, results, output)
}

// judge compares the results with fail.
func (s tests) judge(t *testing.T, results map[string]string, output string) {
	t.Helper()
	require.NotEmpty(t, results, output)
	for name, action := range results {
		reason, expected := s.fail[name]
		switch {
		case action == "FAIL" && !expected:
			t.Errorf("%s fails:\n%s", name, output)
		case action != "FAIL" && expected:
			t.Errorf("%s does not fail any more; delete it from the list (%s)", name, reason)
		}
	}
	for name := range s.fail {
		require.Contains(t, results, name, "fail names a test that does not exist")
	}
	t.Logf("%d tests, of which %d are expected to fail; %d not run", len(results), len(s.fail), len(s.skip))
}

// result is the line of a top-level test.
var result = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+) `)

// goTest builds the tests of a package, runs them in folder, and returns the result of each top-level test: PASS, FAIL
// or SKIP. A panic ends the tests, so that later ones have no result.
func goTest(t *testing.T, folder, overlay, name string, skip map[string]string) (results map[string]string, output string) {
	t.Helper()
	binary := filepath.Join(folder, "tests")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, "-overlay", overlay, "./"+name).CombinedOutput()
	require.NoError(t, err, string(out))
	skipped := "^(" + strings.Join(slices.Collect(maps.Keys(skip)), "|") + ")$"
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.timeout=2m", "-test.skip="+skipped)
	cmd.Dir = folder
	out, _ = cmd.CombinedOutput() // it fails if a test fails
	results = map[string]string{}
	for _, m := range result.FindAllStringSubmatch(string(out), -1) {
		results[m[2]] = m[1]
	}
	return results, string(out)
}

// moduleDir returns the folder of client-go in the module cache.
func moduleDir(t *testing.T) string {
	t.Helper()
	out := must.Get(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output())(t)
	return strings.TrimSpace(string(out))
}

// rewrite returns a file with the changes.
func (s tests) rewrite(t *testing.T, path string) []byte {
	t.Helper()
	set := token.NewFileSet()
	file := must.Get(parser.ParseFile(set, path, nil, parser.ParseComments))(t)
	file.Name.Name = "suite_test"
	file.Decls = slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && s.drop[f.Name.Name] != ""
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && s.rename[id.Name] != "" {
			id.Name = s.rename[id.Name]
		}
		return true
	})
	file.Comments = nil // they may belong to deleted functions
	s.fixImports(t, file)
	var out bytes.Buffer
	require.NoError(t, format.Node(&out, set, file))
	return out.Bytes()
}

// fixImports replaces imports, deletes those without a use, and adds the package of the tests itself.
func (s tests) fixImports(t *testing.T, file *ast.File) {
	t.Helper()
	used := map[string]bool{"": len(file.Unresolved) > 0 && s.usesOwn(file)}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	})
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		g.Specs = slices.DeleteFunc(g.Specs, func(spec ast.Spec) bool {
			i := spec.(*ast.ImportSpec)
			path := must.Get(strconv.Unquote(i.Path.Value))(t)
			name := filepath.Base(path)
			if name == "v2" {
				name = filepath.Base(filepath.Dir(path))
			}
			if i.Name != nil {
				name = i.Name.Name
			}
			if other := s.imports[path]; other != "" {
				i.Path.Value = strconv.Quote(other)
			}
			return !used[name] && name != "_"
		})
		if dot := s.imports["."]; dot != "" && used[""] {
			g.Specs = append(g.Specs, &ast.ImportSpec{Name: ast.NewIdent("."), Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(dot)}})
		}
		return
	}
}

// usesOwn reports whether a file names something that its package exports: an exported identifier that it does not
// declare.
func (s tests) usesOwn(file *ast.File) bool {
	return slices.ContainsFunc(file.Unresolved, func(id *ast.Ident) bool { return id.IsExported() })
}
