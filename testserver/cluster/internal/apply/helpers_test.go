package apply_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/object"
)

// parse returns the tree of an object in YAML.
func parse(t testing.TB, text string) object.Tree {
	t.Helper()
	data := must.Get(yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", "  "))))(t)
	tree := must.Get(object.Decode(data))(t)
	return tree
}

// text returns the JSON of a value, with the keys of maps in order.
func text(t testing.TB, v any) string {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	return string(data)
}

func decode(data []byte) (object.Tree, error) { return object.Decode(data) }
