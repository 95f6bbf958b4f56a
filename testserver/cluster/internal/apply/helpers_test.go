package apply_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/internal/object"
)

// parse returns the tree of an object in YAML.
func parse(t testing.TB, text string) object.Tree {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", "  ")))
	require.NoError(t, err)
	tree, err := object.Decode(data)
	require.NoError(t, err)
	return tree
}

// text returns the JSON of a value, with the keys of maps in order.
func text(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

func decode(data []byte) (object.Tree, error) { return object.Decode(data) }
