package cachedclient

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDifference checks with random trees that the patch turns one into the other and reports whether a list changed.
func TestDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		from, to := randomTree(random, 3), randomTree(random, 3)
		patch, replacesList := difference(from, to)
		require.Equal(t, to, merged(from, patch), "from %v with %v", from, patch)
		require.Equal(t, changesList(from, to), replacesList, "from %v to %v", from, to)
	}
}

// randomTree returns a random JSON object. It uses few names, so that two trees have some in common.
func randomTree(random *rand.Rand, depth int) map[string]any {
	tree := map[string]any{}
	for range random.IntN(4) {
		name := strconv.Itoa(random.IntN(4))
		switch kind := random.IntN(4); {
		case kind == 0:
			tree[name] = []any{strconv.Itoa(random.IntN(2))}
		case kind == 1 && depth > 0:
			tree[name] = randomTree(random, depth-1)
		default:
			tree[name] = strconv.Itoa(random.IntN(2))
		}
	}
	return tree
}

// merged applies a merge patch as RFC 7386 says.
func merged(target any, patch map[string]any) map[string]any {
	tree, _ := target.(map[string]any)
	tree = maps.Clone(tree)
	if tree == nil {
		tree = map[string]any{}
	}
	for name, value := range patch {
		below, isTree := value.(map[string]any)
		switch {
		case value == nil:
			delete(tree, name)
		case isTree:
			tree[name] = merged(tree[name], below)
		default:
			tree[name] = value
		}
	}
	return tree
}

// changesList reports whether a list of one tree is missing or different at the same path of the other tree.
func changesList(from, to map[string]any) bool {
	for name := range both(from, to) {
		old, _ := from[name].(map[string]any) // an object that is missing has no lists
		tree, _ := to[name].(map[string]any)
		_, wasList := from[name].([]any)
		_, isList := to[name].([]any)
		if (wasList || isList) && !reflect.DeepEqual(from[name], to[name]) || changesList(old, tree) {
			return true
		}
	}
	return false
}

func both(a, b map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
