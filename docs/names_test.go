package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// pages returns the text of every Markdown page.
func pages(t *testing.T) map[string]string {
	t.Helper()
	contents := map[string]string{}
	for _, pattern := range []string{"*.md", "benchmarks/*.md", "decisions/*.md", "../*.md", "../internal/archtest/*.md"} {
		paths := must.Get(filepath.Glob(pattern))(t)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			page := must.Get(os.ReadFile(path))(t)
			contents[path] = string(page)
		}
	}
	return contents
}

// declared returns the names that the Go files of a folder declare, with methods and fields, without test files.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	paths := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
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
	qualified = regexp.MustCompile("`(\\w+(?:/\\w+)*)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?")
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

var (
	anchored = regexp.MustCompile(`\]\(([^)#:\s]*)#([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestAnchorsExist(t *testing.T) {
	all, found := pages(t), 0
	for path, page := range all {
		for _, link := range anchored.FindAllStringSubmatch(withoutCode(page), -1) {
			to := path
			if link[1] != "" {
				to = strings.TrimPrefix(filepath.ToSlash(filepath.Join(filepath.Dir(path), link[1])), "../docs/")
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(all[to], -1) {
				anchors = append(anchors, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			require.Contains(t, anchors, link[2], "%s links to %s", path, to)
			found++
		}
	}
	require.Greater(t, found, 10)
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

// packages returns the folder of each package by its path, and by its last element if only one package has it.
func packages(t *testing.T) map[string]string {
	t.Helper()
	all, last := map[string]string{}, map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if base := d.Name(); path != ".." && (strings.HasPrefix(base, ".") || base == "internal" || base == "testdata" || base == "bench" || base == "e2e") {
			return fs.SkipDir
		}
		if found, _ := filepath.Glob(filepath.Join(path, "*.go")); len(found) > 0 {
			name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
			all[name], last[d.Name()] = path, append(last[d.Name()], path)
		}
		return nil
	}))
	for name, paths := range last {
		if all[name] == "" && len(paths) == 1 {
			all[name] = paths[0]
		}
	}
	return all
}

// theirs are names of other libraries on pages about leat.
var theirs = []string{"cache.Cache"}

// TestNamesOnPagesExist looks for each name of leat, such as `informer.Options.Check`, in the code of its package. The
// first column of client-go.md has names of other libraries, and migrate.md has code of both sides, which is compiled.
func TestNamesOnPagesExist(t *testing.T) {
	folders, names, anywhere, found := packages(t), map[string]map[string]bool{}, map[string]bool{}, 0
	for _, folder := range folders {
		if names[folder] == nil {
			names[folder] = declared(t, folder)
			maps.Copy(anywhere, names[folder])
		}
	}
	for path, page := range pages(t) {
		if strings.HasPrefix(path, "decisions") || path == "migrate.md" || path == "../CHANGELOG.md" {
			continue // decisions and changes name what was
		}
		isMap := path == "client-go.md"
		for line := range strings.Lines(withoutCode(page)) {
			if cells := strings.SplitN(line, "|", 3); isMap && len(cells) == 3 {
				line = cells[2]
			}
			for _, m := range qualified.FindAllStringSubmatch(line, -1) {
				folder := folders[m[1]]
				if isMap && slices.Contains([]string{"i", "Options", "registration"}, m[1]) {
					folder = folders["informer"]
				}
				if folder == "" || slices.Contains(theirs, m[1]+"."+m[2]) {
					continue
				}
				require.True(t, names[folder][m[2]] && (m[3] == "" || anywhere[m[3]]), "%s: %s", path, line)
				found++
			}
		}
	}
	require.Greater(t, found, 200)
}
