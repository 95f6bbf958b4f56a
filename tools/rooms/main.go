// Command rooms changes the imports of leat's packages from their paths in v0.1.0 to those of today. It changes the Go
// files in a folder and below it. A package whose name has changed keeps its old name in a file, as the name of the
// import. The command prints the files that it changed. Run it a second time, and it changes nothing.
//
// Usage: rooms folder
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/leatproject/leat/"

// moves has the old and the new path of each package that moved. A package below an old path moves with it. The longest
// paths come first.
var moves = []move{
	{"adapter/controllerruntime", "adapter/leatcache", "leatcache"},
	{"shard/hashrange", "api/hashrange", "hashrange"},
	{"shard/cut", "scale/shardedsource", "cut"},
	{"owner", "reconcile/owner", "owner"},
	{"expectations", "reconcile/expectations", "expectations"},
	{"recorder", "reconcile/events", "recorder"},
	{"status", "reconcile/conditions", "status"},
	{"scopes", "scale/scopes", "scopes"},
	{"shard", "scale/shard", "shard"},
	{"packed", "scale/packed", "packed"},
	{"warmstart", "scale/warmstart", "warmstart"},
	{"fleet", "scale/stagger", "fleet"},
	{"consistency", "scale/driftcheck", "consistency"},
	{"clusters", "scale/multicluster", "clusters"},
	{"recording", "observe/recording", "recording"},
	{"livepage", "observe/livepage", "livepage"},
	{"leaderelection", "manager/leaderelection", "leaderelection"},
	{"accessreview", "manager/accessreview", "accessreview"},
	{"zapslog", "adapter/zapslog", "zapslog"},
}

// move is the move of a package. name is its old name; the new one is the last element of its new path.
type move struct{ from, to, name string }

// moveOf returns the move of a path below the module, and the new path.
func moveOf(at string) (m move, to string, ok bool) {
	for _, m := range moves {
		if rest, below := strings.CutPrefix(at+"/", m.from+"/"); below {
			return m, strings.TrimSuffix(m.to+"/"+rest, "/"), true
		}
	}
	return move{}, at, false
}

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: rooms folder")
		os.Exit(2)
	}
	if err := changeImports(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

// changeImports changes the Go files of a folder and of those below it.
func changeImports(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case !d.IsDir() && strings.HasSuffix(name, ".go"):
			if err := changeFile(name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		case d.IsDir() && name != root && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_'):
			return fs.SkipDir
		}
		return nil
	})
}

// changeFile changes the imports of one file. A renamed package keeps its old name, as the name of the import.
func changeFile(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ImportsOnly)
	if err != nil {
		return err
	}
	after := content
	for _, spec := range slices.Backward(file.Imports) { // from the end, because a change moves what follows
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		at, own := strings.CutPrefix(imported, module)
		m, to, moved := moveOf(at)
		if !own || !moved {
			continue
		}
		text := strconv.Quote(module + to)
		if spec.Name == nil && at == m.from && path.Base(m.to) != m.name {
			text = m.name + " " + text
		}
		from, end := set.Position(spec.Path.Pos()).Offset, set.Position(spec.Path.End()).Offset
		after = slices.Concat(after[:from], []byte(text), after[end:])
	}
	if bytes.Equal(content, after) {
		return nil
	}
	fmt.Println(name)
	if formatted, err := format.Source(content); err == nil && bytes.Equal(formatted, content) {
		if after, err = format.Source(after); err != nil {
			return err
		}
	}
	return os.WriteFile(name, after, 0o644)
}
