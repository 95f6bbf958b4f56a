package writer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Apply merges a configuration into an object, or creates the object. The caller holds the lock.
func (wr *Writer) Apply(c *store.Collection, key types.NamespacedName, config object.Tree, w Write, force bool) (*store.Record, bool, error) {
	w.upsert, w.applied = true, true
	dropNulls(config)
	config = writable(c.Definition(), config, w)
	wanted := leavesOf(config)
	me := &manager{
		name: w.Manager, operation: "Apply", apiVersion: object.StringAt(config, "apiVersion"), subresource: w.Subresource,
		time: now(), fields: map[string]bool{},
	}
	for path := range wanted {
		me.fields[path] = true
	}
	old := c.Get(key)
	if old == nil {
		if uid := object.StringAt(object.Metadata(config), "uid"); uid != "" {
			return nil, false, apierrors.NewConflict(c.Definition().GroupResource(), key.Name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		if object.StringAt(object.Metadata(config), "name") == "" && w.Subresource == "" {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf(
				"the name of the object (%s based on URL) was undeterminable: name must be provided", key.Name))
		}
		if len(me.fields) > 0 {
			writeManagers(config, []*manager{me})
		}
		return wr.Update(c, key, config, w)
	}
	before := old.Tree()
	managers := readManagers(before)
	if err := conflicts(managers, me, leavesOf(before), wanted); err != nil && !force {
		return nil, false, err
	}
	after := merge("", old.Tree(), config).(object.Tree)
	for _, path := range abandoned(managers, me) {
		removePath(after, "", strings.Split(path, fieldSeparator))
	}
	managers = setFields(managers, me, leavesOf(before), leavesOf(after), wanted)
	delete(object.Metadata(after), "resourceVersion")
	object.SetOrDrop(object.Metadata(after), "resourceVersion", object.Metadata(config)["resourceVersion"])
	after["kind"], after["apiVersion"] = config["kind"], config["apiVersion"]
	writeManagers(after, managers)
	return wr.Update(c, key, after, w)
}

// writable returns the part of a configuration that the path of the request may write. The rest is neither applied nor
// owned.
func writable(d *registry.Definition, config object.Tree, w Write) object.Tree {
	switch {
	case d.NoStatus:
	case w.Subresource == "":
		delete(config, "status")
	default:
		out := object.Tree{"kind": config["kind"], "apiVersion": config["apiVersion"], "metadata": object.Tree{}}
		object.SetOrDrop(out, "status", config["status"])
		out["metadata"] = statusConfig(d, object.Metadata(config))
		return out
	}
	return config
}

// statusConfig returns the metadata that may be applied with a status; see statusMetadata.
func statusConfig(d *registry.Definition, meta object.Tree) object.Tree {
	out := maps.Clone(meta)
	maps.DeleteFunc(out, func(name string, _ any) bool {
		identity := slices.Contains([]string{"name", "namespace", "uid", "resourceVersion"}, name)
		return !identity && (d.Custom || slices.Contains(d.StatusKeeps, name))
	})
	return out
}

// conflicts returns the 409 for fields that other managers own with different values, or nil.
func conflicts(all []*manager, me *manager, have, want map[string]any) error {
	var causes []metav1.StatusCause
	for _, m := range all {
		if m.same(me) {
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(m.fields)) {
			value, wanted := want[path]
			if wanted && !reflect.DeepEqual(value, have[path]) {
				causes = append(causes, metav1.StatusCause{
					Type: metav1.CauseTypeFieldManagerConflict, Message: fmt.Sprintf("conflict with %q", m.name), Field: readable(path),
				})
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	message := fmt.Sprintf("Apply failed with 1 conflict: %s: %s", causes[0].Message, causes[0].Field)
	if len(causes) > 1 {
		message = fmt.Sprintf("Apply failed with %d conflicts", len(causes))
		for _, c := range causes {
			message += fmt.Sprintf("\n- %s: %s", c.Message, c.Field)
		}
	}
	return apierrors.NewApplyConflict(causes, message)
}

// readable formats a field path for people: ".spec.replicas".
func readable(path string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(path, fieldSeparator) {
		switch {
		case strings.HasPrefix(part, "f:"):
			out.WriteString("." + part[2:])
		case strings.HasPrefix(part, "k:"):
			out.WriteString("[" + part[2:] + "]")
		}
	}
	return out.String()
}

// abandoned returns the fields that a manager applied before and omits now, except those that another manager owns. The
// deepest come first.
func abandoned(all []*manager, me *manager) []string {
	var out []string
	for _, m := range all {
		if !m.same(me) {
			continue
		}
		for path := range m.fields {
			if !me.fields[path] && !ownedElsewhere(all, me, path) {
				out = append(out, path)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if d := strings.Count(b, fieldSeparator) - strings.Count(a, fieldSeparator); d != 0 {
			return d
		}
		return strings.Compare(a, b) // "." first: an item is removed as a whole, before its keys
	})
	return out
}

// ownedElsewhere reports whether another manager owns a field. For a path that ends with ".", it also reports true if
// any manager, including me, owns a field inside.
func ownedElsewhere(all []*manager, me *manager, path string) bool {
	inside := strings.TrimSuffix(path, ".")
	owns := func(m *manager) bool {
		for p := range m.fields {
			if p == path || inside != path && strings.HasPrefix(p, inside) {
				return true
			}
		}
		return false
	}
	if inside != path && owns(me) {
		return true
	}
	return slices.ContainsFunc(all, func(m *manager) bool { return !m.same(me) && owns(m) })
}

// setFields makes a manager the owner of exactly the fields that it applied. Other managers lose the fields whose
// values changed and share the others.
func setFields(all []*manager, me *manager, before, after, wanted map[string]any) []*manager {
	found := false
	for i, m := range all {
		if m.same(me) {
			found = true
			if maps.Equal(m.fields, me.fields) && reflect.DeepEqual(before, after) {
				me.time = m.time // nothing has changed, so nothing must be written
			}
			all[i] = me
			continue
		}
		maps.DeleteFunc(m.fields, func(path string, _ bool) bool {
			_, exists := after[path]
			_, mine := wanted[path]
			return !exists || mine && !reflect.DeepEqual(before[path], after[path])
		})
	}
	if !found {
		all = append(all, me)
	}
	return slices.DeleteFunc(all, func(m *manager) bool { return len(m.fields) == 0 })
}

// merge writes config over have: objects field by field, lists with keys item by item, everything else as a whole.
func merge(path string, have, config any) any {
	switch want := config.(type) {
	case object.Tree:
		into, ok := have.(object.Tree)
		if !ok {
			return config
		}
		for name, value := range want {
			into[name] = merge(below(path, "f:"+name), into[name], value)
		}
		return into
	case []any:
		into, ok := have.([]any)
		keys, known := listKeys(path, want)
		if !ok || !known || !uniquelyKeyed(into, keys) {
			return config
		}
		for _, item := range want {
			key := keyOf(item, keys)
			at := slices.IndexFunc(into, func(o any) bool { return keyOf(o, keys) == key })
			switch {
			case at < 0:
				into = append(into, item)
			case isMetadataList(path):
				into[at] = item
			default:
				into[at] = merge(below(path, key), into[at], item)
			}
		}
		return into
	}
	return config
}

// below returns the path of an element.
func below(path, element string) string {
	if path == "" {
		return element
	}
	return path + fieldSeparator + element
}

// removePath removes a field below the path where, and returns the rest. "." removes the whole value.
func removePath(at any, where string, path []string) any {
	if len(path) == 0 || path[0] == "." {
		return nil
	}
	switch v := at.(type) {
	case object.Tree:
		name := strings.TrimPrefix(path[0], "f:")
		child, ok := v[name]
		if !ok {
			return at
		}
		object.SetOrDrop(v, name, removePath(child, below(where, path[0]), path[1:]))
		return v
	case []any:
		keys, known := listKeys(where, v)
		if !known {
			return at
		}
		i := slices.IndexFunc(v, func(o any) bool { return keyOf(o, keys) == path[0] })
		if i < 0 {
			return at
		}
		if item := removePath(v[i], below(where, path[0]), path[1:]); item != nil {
			v[i] = item
			return v
		}
		if v = slices.Delete(v, i, i+1); len(v) > 0 {
			return v
		}
		return nil
	}
	return at
}

// dropNulls removes empty members of objects. Without types, an applied null is no value.
func dropNulls(m object.Tree) {
	for name, value := range m {
		switch v := value.(type) {
		case nil:
			delete(m, name)
		case object.Tree:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if item, ok := item.(object.Tree); ok {
					dropNulls(item)
				}
			}
		}
	}
}
