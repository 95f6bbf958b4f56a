package cachedclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// mergePatch returns the JSON merge patch (RFC 7386) that turns one state of an object into another. If the patch
// replaces a list, it carries the resource version of the first state, so that it does not undo a concurrent change of
// that list.
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

// treeOf returns the JSON of an object as nested maps. Numbers stay text, because a float64 cannot hold every int64.
func treeOf(object any) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cachedclient: encode a %T: %w", object, err)
	}
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("cachedclient: the JSON of a %T is not an object: %w", object, err)
	}
	return tree, nil
}

// difference returns the merge patch between two trees, and reports whether it replaces or removes a list.
func difference(from, to map[string]any) (patch map[string]any, replacesList bool) {
	patch = map[string]any{}
	for name, old := range from {
		if _, kept := to[name]; !kept {
			patch[name], replacesList = nil, replacesList || hasList(old)
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
			patch[name], replacesList = value, replacesList || hasList(old) || hasList(value)
			continue
		}
		below, list := difference(oldTree, tree)
		patch[name], replacesList = below, replacesList || list
	}
	return patch, replacesList
}

// hasList reports whether a value is a list or an object with a list in it. Another client may have added an object
// that the patch adds, so its lists would be replaced too.
func hasList(value any) bool {
	switch v := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, below := range v {
			if hasList(below) {
				return true
			}
		}
	}
	return false
}
