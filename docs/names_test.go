package docs_test

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
)

// pages returns the text of every Markdown page.
func pages(t *testing.T) map[string]string {
	t.Helper()
	contents := map[string]string{}
	for _, pattern := range []string{"*.md", "decisions/*.md", "../*.md"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			page, err := os.ReadFile(path)
			require.NoError(t, err)
			contents[path] = string(page)
		}
	}
	return contents
}

// declared returns the names that the Go files of a folder declare, with methods and fields, without test files.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

var (
	links     = regexp.MustCompile(`\]\(([^)#:\s]+)\)`)
	places    = regexp.MustCompile("\\]\\(([^)#:\\s]+)/(\\w+\\.go)\\), `(\\w+)`")
	qualified = regexp.MustCompile("`(\\w+(?:/\\w+)?)\\.([A-Z]\\w*)")
)

// withoutCode returns a page without its blocks of code.
func withoutCode(page string) string {
	var text strings.Builder
	for n, block := range strings.Split(page, "```") {
		if n%2 == 0 {
			text.WriteString(block)
		}
	}
	return text.String()
}

func TestLinksLeadSomewhere(t *testing.T) {
	for path, page := range pages(t) {
		for _, link := range links.FindAllStringSubmatch(withoutCode(page), -1) {
			require.FileExists(t, existing(filepath.Join(filepath.Dir(path), link[1])), "%s links to %s", path, link[1])
		}
		for _, place := range places.FindAllStringSubmatch(page, -1) {
			folder := filepath.Join(filepath.Dir(path), place[1])
			require.Contains(t, declared(t, folder), place[3], "%s finds it in %s", path, place[2])
		}
	}
}

// existing turns a folder into a file of it.
func existing(path string) string {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if !e.IsDir() {
			return filepath.Join(path, e.Name())
		}
	}
	return path
}

// TestEveryNameInTheMapsExists looks for every name in leat's column of the map from client-go, and for the new names
// of the map from old names.
func TestEveryNameInTheMapsExists(t *testing.T) {
	fromClientGo, err := os.ReadFile("client-go.md")
	require.NoError(t, err)
	fromOldNames, err := os.ReadFile("names.md")
	require.NoError(t, err)
	found := 0
	for line := range strings.Lines(string(fromClientGo) + string(fromOldNames)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "|--") {
			continue
		}
		for _, m := range qualified.FindAllStringSubmatch(cells[2], -1) {
			folder := map[string]string{"i": "informer", "Options": "informer", "registration": "informer"}[m[1]]
			if folder == "" {
				folder = m[1]
			}
			require.Contains(t, declared(t, filepath.Join("..", folder)), m[2], line)
			found++
		}
	}
	require.Greater(t, found, 30)
}
