package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

const module = "github.com/leatproject/leat/"

// importers returns the folders that import a package, or a package below it, without tests, in the whole repository.
// A folder is a path below the root of the repository.
func importers(t *testing.T) func(path string) (folders []string) {
	t.Helper()
	imports := map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return nil // an example of a mistake in a testdata
		}
		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
		for _, i := range file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			imports[imported] = append(imports[imported], folder)
		}
		return nil
	}))
	return func(path string) (folders []string) {
		for imported, by := range imports {
			if imported == path || strings.HasPrefix(imported, path+"/") {
				folders = append(folders, by...)
			}
		}
		slices.Sort(folders)
		return slices.Compact(folders)
	}
}

// below reports whether a folder is one of the names, or below one. A name may end in "/*".
func below(folder string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.TrimSuffix(name, "/*")
		return folder == name || strings.HasPrefix(folder, name+"/")
	})
}

// rows returns the cells of the rows of a page whose first cell is a name in code.
func rows(t *testing.T, page string) (all [][]string) {
	t.Helper()
	text := must.Get(os.ReadFile(page))(t)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			all = append(all, strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | "))
		}
	}
	require.NotEmpty(t, all)
	return all
}

var code = regexp.MustCompile("`([^`]+)`")

func names(cell string) (all []string) {
	for _, found := range code.FindAllStringSubmatch(cell, -1) {
		all = append(all, found[1])
	}
	return all
}

// TestInternalPackagesAreUsedAsTheTableSays compares the table of packages.md with the imports.
func TestInternalPackagesAreUsedAsTheTableSays(t *testing.T) {
	users := importers(t)
	found := 0
	for _, row := range rows(t, "../internal/archtest/packages.md") {
		shared := names(row[0])
		if len(row) != 3 || !strings.HasPrefix(shared[0], "internal/") && shared[0] != "docs" {
			continue
		}
		for _, name := range shared {
			found++
			requireUsers(t, name, users(module+name), append(names(row[2]), name))
		}
	}
	require.GreaterOrEqual(t, found, 10)
}

// TestModulesAreUsedAsTheTableSays compares the table of dependencies.md with the imports of the root module.
func TestModulesAreUsedAsTheTableSays(t *testing.T) {
	core := strings.Fields("api cache deltafifo reflector informer workqueue controller predicate codec apiclient")
	users := importers(t)
	gomod := must.Get(os.ReadFile(filepath.Join("..", "go.mod")))(t)
	direct := strings.Split(string(gomod), "\n)")[0]
	all := rows(t, "dependencies.md")
	for _, row := range all {
		name := names(row[0])[0]
		require.Contains(t, direct, name+" v", "the root module does not require it")
		if strings.HasPrefix(row[1], "core") {
			require.True(t, slices.ContainsFunc(users(name), func(f string) bool { return below(f, core...) }), name)
			continue
		}
		by := users(name)
		by = slices.DeleteFunc(by, func(f string) bool { return nested(f) || below(f, "internal/fixture", "internal/listerwatchertest") })
		if row[1] == "tests" {
			require.Empty(t, by, name)
			continue
		}
		requireUsers(t, name, by, strings.Split(row[1], ", "))
	}
	require.Equal(t, strings.Count(direct, "\n\t"), len(all), "each direct dependency has a row")
}

// requireUsers checks that each user is listed, and that each entry of the list is a user or above one.
func requireUsers(t *testing.T, name string, users, listed []string) {
	t.Helper()
	for _, folder := range users {
		require.True(t, below(folder, listed...), "%s uses %s, and the table lists %v", folder, name, listed)
	}
	for _, entry := range listed {
		require.True(t, entry == name || slices.ContainsFunc(users, func(f string) bool { return below(f, entry) }),
			"%s does not use %s", entry, name)
	}
}

// nested reports whether a folder belongs to a module below the root.
func nested(folder string) bool {
	for ; folder != "."; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join("..", folder, "go.mod")); err == nil {
			return true
		}
	}
	return false
}
