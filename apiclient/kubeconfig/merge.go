package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leatproject/leat/internal/quote"
	"github.com/leatproject/leat/internal/regularfile"
)

// merged has the entries of a list of files. If two files have an entry of one name, the first file wins.
type merged struct {
	paths          []string // of the files that were read
	named          bool     // the caller has named the file
	currentContext string
	clusters       map[string]cluster
	users          map[string]user
	contexts       map[string]contextInfo
}

func newMerged() *merged {
	return &merged{clusters: map[string]cluster{}, users: map[string]user{}, contexts: map[string]contextInfo{}}
}

// readAll reads one file, or the files of the list that exist. If no file exists, the result has no paths.
func readAll(path string) (*merged, error) {
	m := newMerged()
	if path != "" {
		m.named = true
		return m, m.add(path)
	}
	for _, p := range defaultPaths() {
		if err := m.add(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return m, nil
}

// defaultPaths returns the files of KUBECONFIG, each once, or else the file in the home directory.
func defaultPaths() []string {
	var paths []string
	for _, p := range filepath.SplitList(os.Getenv("KUBECONFIG")) {
		if p != "" && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) > 0 {
		return paths
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".kube", "config")}
}

// add merges one file. If the file does not exist, errors.Is finds os.ErrNotExist in the error.
func (m *merged) add(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return &Error{Path: path, Err: err}
	}
	data, err := regularfile.Read(path)
	if err != nil {
		return &Error{Path: path, Err: bare(err)}
	}
	return m.merge(path, data)
}

// contentName stands for the file in errors of Parse. Its folder is the current one.
const contentName = "content"

// addContent merges the content that Parse gets.
func (m *merged) addContent(data []byte) error {
	if len(data) > regularfile.MaxBytes {
		return &Error{Path: contentName, Err: fmt.Errorf("it is larger than %d MiB", regularfile.MaxBytes>>20)}
	}
	return m.merge(contentName, data)
}

// merge adds the entries of one file.
func (m *merged) merge(path string, data []byte) error {
	f, err := parse(path, data)
	if err != nil {
		return err
	}
	m.paths = append(m.paths, path)
	if m.currentContext == "" {
		m.currentContext = f.CurrentContext
	}
	for _, c := range f.Clusters {
		c.Cluster.origin = path
		keepFirst(m.clusters, c.Name, c.Cluster)
	}
	for _, u := range f.Users {
		u.User.origin = path
		keepFirst(m.users, u.Name, u.User)
	}
	for _, c := range f.Contexts {
		c.Context.origin = path
		keepFirst(m.contexts, c.Name, c.Context)
	}
	return nil
}

func keepFirst[V any](m map[string]V, name string, v V) {
	if _, ok := m[name]; !ok {
		m[name] = v
	}
}

// path returns the files for an error: the files that were read, or else the files that Load looked for.
func (m *merged) path() string {
	paths := m.paths
	if len(paths) == 0 {
		paths = defaultPaths()
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

func (m *merged) errorf(field, format string, a ...any) error {
	return &Error{Path: m.path(), Field: field, Err: fmt.Errorf(format, a...)}
}

// names lists the first keys of a map for an error, in order, and counts the others.
func names[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	quoted := slices.Sorted(maps.Keys(m))
	for i, name := range quoted {
		quoted[i] = strconv.Quote(name)
	}
	return quote.List(quoted, ", ")
}
