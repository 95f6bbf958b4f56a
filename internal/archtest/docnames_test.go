package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	// docList is a list of methods in a doc.go: "(Put, Flush)" or "──Put, Flush──▶".
	docList = regexp.MustCompile(`(?:\(|──)([A-Z]\w*(?:,\s(?://\s)?[A-Z]\w*)+)(?:\)|──)`)
	docLink = regexp.MustCompile(`\[\*?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)
	docName = regexp.MustCompile(`[A-Z]\w*`)
)

func TestDocNamesExist(t *testing.T) {
	for _, name := range []string{"api", "apiclient", "codec", "cache", "deltafifo", "reflector", "informer", "workqueue", "controller", "predicate"} {
		folder := filepath.Join("..", "..", name)
		declared := declarations(t, folder)
		text := must.Get(os.ReadFile(filepath.Join(folder, "doc.go")))(t)
		for _, list := range docList.FindAllStringSubmatch(string(text), -1) {
			for _, method := range docName.FindAllString(list[1], -1) {
				require.True(t, declared[method], "%s/doc.go names %s", name, method)
			}
		}
		for _, link := range docLink.FindAllStringSubmatch(string(text), -1) {
			for _, part := range link[1:] {
				require.True(t, part == "" || declared[part], "%s/doc.go links %s", name, link[0])
			}
		}
	}
}

// declarations returns the names of functions, methods, types, fields, constants and variables of a package.
func declarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	paths := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				found[n.Name.Name] = true
			case *ast.Field:
				for _, id := range n.Names {
					found[id.Name] = true
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					found[id.Name] = true
				}
			}
			return true
		})
	}
	return found
}
