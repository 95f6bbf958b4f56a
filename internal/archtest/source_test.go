package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is the repository, parsed.
type source struct {
	fs    fs.FS
	set   *token.FileSet
	files []*file
}

// file is a Go file. Its path is relative to the root of the repository.
type file struct {
	*ast.File
	path   string
	pkg    string // the folder, which is also the import path below the module
	test   bool
	nested bool // belongs to another module of the repository
}

// finding is a violation of a rule.
type finding struct {
	path   string
	line   int
	reason string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.reason) }

// read parses every Go file of a repository, those of its other modules included.
func read(t *testing.T, root fs.FS) *source {
	t.Helper()
	s := &source{fs: root, set: token.NewFileSet()}
	var modules []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")):
			return fs.SkipDir
		case base == "go.mod" && name != "go.mod":
			modules = append(modules, path.Dir(name))
		case strings.HasSuffix(name, ".go"):
			content, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(s.set, name, content, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			s.files = append(s.files, &file{
				File: parsed, path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			})
		}
		return nil
	})
	require.NoError(t, err)
	for _, f := range s.files {
		f.nested = slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(f.path, m+"/") })
	}
	return s
}

// own yields the files of the root module that are not tests.
func (s *source) own(yield func(*file) bool) {
	for _, f := range s.files {
		if !f.test && !f.nested && !yield(f) {
			return
		}
	}
}

func (s *source) at(f *file, pos token.Pos, format string, args ...any) finding {
	return finding{path: f.path, line: s.set.Position(pos).Line, reason: fmt.Sprintf(format, args...)}
}

// packages returns the packages of the root module, with their files that are not tests.
func (s *source) packages() map[string][]*file {
	packages := map[string][]*file{}
	for f := range s.own {
		packages[f.pkg] = append(packages[f.pkg], f)
	}
	return packages
}

// functions returns the names of the functions in the test files of a package.
func (s *source) testFunctions(pkg string) map[string]bool {
	names := map[string]bool{}
	for _, f := range s.files {
		if f.test && f.pkg == pkg {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					names[fn.Name.Name] = true
				}
			}
		}
	}
	return names
}
