package archtest_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

// TestTheEngineStaysSmall bounds what a reader of the engine has to read, and what the root of the repository shows. A
// variant of an informer plugs in or stands outside, so the engine does not grow with the number of variants.
func TestTheEngineStaysSmall(t *testing.T) {
	s := repository(t)
	lines := func(pkg string) (n int) {
		for _, f := range s.packages()[pkg] {
			n += s.set.File(f.Pos()).LineCount()
		}
		return n
	}
	require.LessOrEqual(t, lines("deltafifo"), 650)
	require.LessOrEqual(t, lines("informer"), 2200)
	require.LessOrEqual(t, fieldsOf(s.packages()["informer"], "Informer"), 14)

	for folder, files := range s.packages() {
		require.LessOrEqual(t, len(files), 20, "files in %s", folder)
	}

	entries := must.Get(os.ReadDir(root))(t)
	folders := 0
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders++
		}
	}
	require.LessOrEqual(t, folders, 28, "folders at the root")

	// The engine does not know scopes, shards or packed objects by their packages.
	for _, pkg := range []string{"api", "deltafifo", "cache", "reflector", "informer"} {
		for _, f := range s.packages()[pkg] {
			for _, i := range f.Imports {
				require.NotContains(t, i.Path.Value, "/leat/scale/", "%s imports a variant", filepath.ToSlash(pkg))
			}
		}
	}
}

// fieldsOf returns the number of fields of a struct.
func fieldsOf(files []*file, name string) (n int) {
	for _, f := range files {
		ast.Inspect(f.File, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.Name == name {
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					n += max(1, len(field.Names))
				}
			}
			return true
		})
	}
	return n
}
