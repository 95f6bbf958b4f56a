package writer

import (
	"encoding/json"
	"fmt"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// DecodeTree decodes an object that is already parsed, so that it gets the defaults and checks of its Schema.
func DecodeTree(d *registry.Definition, to registry.Target, tree object.Tree) (object.Tree, []string, error) {
	if u, ok := d.Schema.(untyped); ok { // no type changes the tree
		return tree, nil, u.check(to, tree)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		return nil, nil, fmt.Errorf("testserver: encode an object: %w", err)
	}
	return d.Schema.Decode(to, "application/json", encoded)
}
