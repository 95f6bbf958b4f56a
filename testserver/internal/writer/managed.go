package writer

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// fieldSeparator joins the elements of a field path. The elements are those of metadata.managedFields: "f:name" is a
// field, `k:{"name":"x"}` is the item of a list with these keys, `v:"x"` that of a set, and "." is the value itself.
const fieldSeparator = "\x00"

// manager is one entry of metadata.managedFields.
type manager struct {
	name, operation, apiVersion, subresource, time string
	fields                                         map[string]bool
}

// same reports whether two entries have the same manager, operation, version and subresource.
func (m *manager) same(o *manager) bool {
	return m.name == o.name && m.operation == o.operation && m.apiVersion == o.apiVersion && m.subresource == o.subresource
}

// recordManager writes to metadata.managedFields which fields an update or a creation set. The last writer of a field
// owns it. before is nil for a creation. The entries that the client sent are the starting point.
func recordManager(d *registry.Definition, before, tree object.Tree, w Write) {
	switch {
	case w.applied: // server-side apply has already recorded it
		return
	case w.Subresource == "binding":
		return
	case before != nil && len(object.SliceAt(object.Metadata(tree), "managedFields")) == 0: // the old object has no managers
		return
	}
	old, fresh := leavesOf(before), leavesOf(tree)
	me := &manager{
		name: cmp.Or(w.Manager, "unknown"), operation: "Update", apiVersion: d.In(cmp.Or(w.Served, d.Version)).GroupVersion().String(),
		subresource: w.Subresource, time: now(), fields: map[string]bool{},
	}
	for path, value := range fresh {
		if had, ok := old[path]; !ok || !reflect.DeepEqual(had, value) {
			me.fields[path] = true
		}
	}
	writeManagers(tree, takeFields(readManagers(tree), me, fresh))
}

// takeFields gives me its fields, takes them from all other managers, and removes fields that no longer exist.
func takeFields(all []*manager, me *manager, fresh map[string]any) []*manager {
	var mine *manager
	for _, m := range all {
		if m.same(me) {
			mine = m
		}
		maps.DeleteFunc(m.fields, func(path string, _ bool) bool {
			_, exists := fresh[path]
			return !exists || me.fields[path] && !m.same(me)
		})
	}
	if len(me.fields) > 0 {
		if mine == nil {
			all = append(all, me)
		} else {
			maps.Copy(mine.fields, me.fields)
			mine.time = me.time
		}
	}
	return slices.DeleteFunc(all, func(m *manager) bool { return len(m.fields) == 0 })
}

// unmanaged are the metadata without an owner, because the server writes them.
var unmanaged = []string{
	"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "selfLink", "managedFields",
}

// leavesOf returns the fields of an object that can have an owner, with their values.
func leavesOf(tree object.Tree) map[string]any {
	out := map[string]any{}
	for name, value := range tree {
		switch name {
		case "kind", "apiVersion":
		case "metadata":
			meta, _ := value.(object.Tree)
			for field, v := range meta {
				if !slices.Contains(unmanaged, field) {
					leaves(out, "f:metadata"+fieldSeparator+"f:"+field, v)
				}
			}
		default:
			leaves(out, "f:"+name, value)
		}
	}
	return out
}

func leaves(out map[string]any, path string, value any) {
	switch v := value.(type) {
	case object.Tree:
		if len(v) == 0 || isFreeMap(path) {
			out[path+fieldSeparator+"."] = true
		}
		for name, child := range v {
			leaves(out, path+fieldSeparator+"f:"+name, child)
		}
	case []any:
		keys, known := listKeys(path, v)
		if !known {
			out[path] = value
			return
		}
		for _, item := range v {
			child := path + fieldSeparator + keyOf(item, keys)
			if isMetadataList(path) {
				out[child] = item
				continue
			}
			out[child+fieldSeparator+"."] = true
			for name, member := range item.(object.Tree) {
				leaves(out, child+fieldSeparator+"f:"+name, member)
			}
		}
	default:
		out[path] = value
	}
}

// isFreeMap reports whether a path is a map whose keys users choose, instead of a struct.
func isFreeMap(path string) bool {
	for _, name := range []string{"labels", "annotations", "data", "matchLabels", "nodeSelector", "limits", "requests"} {
		if strings.HasSuffix(path, "f:"+name) {
			return true
		}
	}
	return false
}

// Lists of metadata. All objects have them, and each item has an owner as a whole.
const (
	finalizersPath = "f:metadata" + fieldSeparator + "f:finalizers"
	ownersPath     = "f:metadata" + fieldSeparator + "f:ownerReferences"
)

func isMetadataList(path string) bool { return path == finalizersPath || path == ownersPath }

// listKeys returns the fields that identify the items of a list; the items of a set identify themselves. known is false
// if the list has one owner as a whole. Without schemas, it tries the keys that the lists of built-in types have.
func listKeys(path string, list []any) (keys []string, known bool) {
	candidates := [][]string{{"containerPort", "protocol"}, {"port", "protocol"}, {"name"}, {"type"}, {"ip"}, {"uid"}}
	switch path {
	case finalizersPath:
		candidates = [][]string{nil}
	case ownersPath:
		candidates = [][]string{{"uid"}}
	}
	for _, keys := range candidates {
		if len(list) > 0 && uniquelyKeyed(list, keys) {
			return keys, true
		}
	}
	return nil, false
}

func uniquelyKeyed(list []any, keys []string) bool {
	seen := map[string]bool{}
	for _, item := range list {
		m, ok := item.(object.Tree)
		if _, text := item.(string); !ok && (!text || len(keys) > 0) {
			return false
		}
		for _, k := range keys {
			switch m[k].(type) {
			case string, int64:
			default:
				return false
			}
		}
		key := keyOf(item, keys)
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// keyOf returns the path element of an item.
func keyOf(item any, keys []string) string {
	if len(keys) == 0 {
		encoded, _ := json.Marshal(item) // encoding a string cannot fail
		return "v:" + string(encoded)
	}
	key := object.Tree{}
	for _, k := range keys {
		key[k] = item.(object.Tree)[k]
	}
	encoded, _ := json.Marshal(key) // encoding strings and numbers cannot fail
	return "k:" + string(encoded)
}

// readManagers parses metadata.managedFields and drops malformed entries.
func readManagers(tree object.Tree) []*manager {
	var out []*manager
	for _, entry := range object.SliceAt(object.Metadata(tree), "managedFields") {
		e, ok := entry.(object.Tree)
		if !ok {
			continue
		}
		m := &manager{
			name: object.StringAt(e, "manager"), operation: object.StringAt(e, "operation"), apiVersion: object.StringAt(e, "apiVersion"),
			subresource: object.StringAt(e, "subresource"), time: object.StringAt(e, "time"), fields: map[string]bool{},
		}
		readFields(m.fields, "", object.MapAt(e, "fieldsV1"))
		out = append(out, m)
	}
	return out
}

func readFields(out map[string]bool, path string, set object.Tree) {
	if len(set) == 0 && path != "" {
		out[path] = true
		return
	}
	for name, child := range set {
		members, _ := child.(object.Tree)
		readFields(out, below(path, name), members)
	}
}

// writeManagers writes metadata.managedFields. As in kube-apiserver, the entries of server-side apply come first.
func writeManagers(tree object.Tree, all []*manager) {
	slices.SortStableFunc(all, func(a, b *manager) int { return strings.Compare(a.operation, b.operation) })
	var out []any
	for _, m := range all {
		set := object.Tree{}
		for path := range m.fields {
			at := set
			for part := range strings.SplitSeq(path, fieldSeparator) {
				child, ok := at[part].(object.Tree)
				if !ok {
					child = object.Tree{}
					at[part] = child
				}
				at = child
			}
		}
		entry := object.Tree{
			"manager": m.name, "operation": m.operation, "apiVersion": m.apiVersion, "time": m.time,
			"fieldsType": "FieldsV1", "fieldsV1": set,
		}
		if m.subresource != "" {
			entry["subresource"] = m.subresource
		}
		out = append(out, entry)
	}
	object.SetOrDropList(object.Metadata(tree), "managedFields", out)
}
