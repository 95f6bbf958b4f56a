package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkTree compares a tree with a map, and its shape with the rules of a treap.
func checkTree(t *testing.T, root *node, model map[string]*Record) {
	t.Helper()
	require.Equal(t, len(model), root.len())
	paths := slices.Sorted(maps.Keys(model))
	var got []string
	for r := range root.scan("", "") {
		got = append(got, r.Path)
		require.Same(t, model[r.Path], r)
	}
	require.True(t, slices.Equal(paths, got), "%v is not %v", got, paths)
	for i, path := range paths {
		require.Equal(t, i, root.rank(path))
		require.Same(t, model[path], root.get(path))
	}
	var check func(n *node)
	check = func(n *node) {
		if n == nil {
			return
		}
		for _, child := range []*node{n.left, n.right} {
			if child != nil {
				require.LessOrEqual(t, child.priority, n.priority)
			}
			check(child)
		}
	}
	check(root)
}

// step makes one change to a tree and to its model.
func step(root *node, model map[string]*Record, path string, remove bool) *node {
	if remove {
		delete(model, path)
		return root.remove(path)
	}
	r := &Record{content: content{Path: path}}
	model[path] = r
	return root.set(r)
}

func TestTreeAgreesWithMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var root *node
	model := map[string]*Record{}
	type version struct {
		root  *node
		model map[string]*Record
	}
	var kept []version
	for i := range 3000 {
		root = step(root, model, fmt.Sprintf("ns%d/%d", random.IntN(5), random.IntN(60)), random.IntN(3) == 0)
		if i%300 == 0 {
			checkTree(t, root, model)
			kept = append(kept, version{root, maps.Clone(model)})
		}
	}
	for _, v := range kept {
		checkTree(t, v.root, v.model) // later changes do not affect old versions
	}
}

func TestTreeScansRanges(t *testing.T) {
	var root *node
	for _, path := range []string{"a/1", "a/2", "a-b/1", "b/1", "b/2", "c"} {
		root = root.set(&Record{content: content{Path: path}})
	}
	for _, row := range []struct {
		from, until string
		want        []string
	}{
		{"", "", []string{"a-b/1", "a/1", "a/2", "b/1", "b/2", "c"}},
		{"a/", "a0", []string{"a/1", "a/2"}},
		{"a/1\x00", "a0", []string{"a/2"}},
		{"b/", "", []string{"b/1", "b/2", "c"}},
		{"d", "", nil},
		{"a/3", "a0", nil},
	} {
		var got []string
		for r := range root.scan(row.from, row.until) {
			got = append(got, r.Path)
		}
		require.Equal(t, row.want, got, "%q to %q", row.from, row.until)
	}
	for range root.scan("", "") {
		break // a loop over a scan may stop early
	}
}

// FuzzTree decodes changes from its input and compares the tree with a map.
func FuzzTree(f *testing.F) {
	f.Add([]byte("abcABC"))
	f.Add([]byte{0, 1, 2, 128, 129, 1, 1, 129})
	f.Fuzz(func(t *testing.T, changes []byte) {
		var root *node
		model := map[string]*Record{}
		for _, b := range changes {
			root = step(root, model, fmt.Sprintf("%d/%d", b&3, b>>2&31), b&128 != 0)
		}
		checkTree(t, root, model)
	})
}
