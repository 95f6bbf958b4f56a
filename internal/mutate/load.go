package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// source is a package, parsed and type-checked, without its tests.
type source struct {
	path  string // of the import
	dir   string
	name  string
	set   *token.FileSet
	files []file
	info  *types.Info
}

type file struct {
	*ast.File
	path    string
	content []byte
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// load returns the packages that a pattern of the go command names.
func load(pattern string) ([]*source, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly", pattern)
	var failure bytes.Buffer
	list.Stderr = &failure
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", pattern, err, failure.Bytes())
	}
	exports := map[string]string{}
	var named []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			named = append(named, l)
		}
	}
	var sources []*source
	for _, l := range named {
		s, err := parse(l, open(exports))
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// open returns what opens the compiler's output for a package.
func open(exports map[string]string) importer.Lookup {
	return func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}

// parse reads and checks a package. export opens what the compiler wrote of an imported one.
func parse(l listed, export importer.Lookup) (*source, error) {
	s := &source{path: l.ImportPath, dir: l.Dir, name: l.Name, set: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
	}}
	var files []*ast.File
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(s.set, path, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, parsed)
		s.files = append(s.files, file{parsed, path, content})
	}
	config := types.Config{Importer: importer.ForCompiler(s.set, "gc", export)}
	if _, err := config.Check(l.ImportPath, s.set, files, s.info); err != nil {
		return nil, err
	}
	return s, nil
}
