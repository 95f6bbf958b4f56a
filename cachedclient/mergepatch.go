package cachedclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// mergePatch makes the JSON merge patch (RFC 7386) that leads from one state of an object to another. It carries the
// version of the former if it replaces a list, in which others may have changed something.
func mergePatch[T api.Object](before, after T) (apiclient.Patch, error) {
	from, err := treeOf(before)
	if err != nil {
		return apiclient.Patch{}, err
	}
	to, err := treeOf(after)
	if err != nil {
		return apiclient.Patch{}, err
	}
	patch, replacesList := difference(from, to)
	if replacesList {
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["resourceVersion"] = before.GetResourceVersion()
		patch["metadata"] = metadata
	}
	return apiclient.MergePatch(patch)
}

func treeOf(object any) (map[string]any, error) {
	written, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cachedclient: write a %T: %w", object, err)
	}
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(written))
	d.UseNumber() // a float64 has no room for every int64
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("cachedclient: a %T is not written as an object: %w", object, err)
	}
	return tree, nil
}

// difference returns what to merge into from to get to, and whether a list is among it.
func difference(from, to map[string]any) (patch map[string]any, replacesList bool) {
	patch = map[string]any{}
	for name, old := range from {
		if _, kept := to[name]; !kept {
			patch[name] = nil
			_, list := old.([]any)
			replacesList = replacesList || list
		}
	}
	for name, value := range to {
		old, known := from[name]
		if known && reflect.DeepEqual(old, value) {
			continue
		}
		oldTree, wasTree := old.(map[string]any)
		tree, isTree := value.(map[string]any)
		if !wasTree || !isTree {
			_, wasList := old.([]any)
			_, isList := value.([]any)
			patch[name], replacesList = value, replacesList || wasList || isList
			continue
		}
		below, list := difference(oldTree, tree)
		patch[name], replacesList = below, replacesList || list
	}
	return patch, replacesList
}
