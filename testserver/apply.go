package testserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// apply is server-side apply (KEP-555). The manager becomes an owner of the fields in its configuration. Fields that it
// applied before and omits now are removed unless another manager owns them. A field that another manager owns with a
// different value is a conflict, unless the request sets force. Without schemas, lists are merged by the keys of the
// built-in types (see listKeys); other lists have one owner as a whole.
func (x *call) apply() error {
	w, err := x.write()
	if err != nil {
		return err
	}
	q := x.request.Query
	if w.manager = q.Get("fieldManager"); w.manager == "" {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	config, err := x.configuration()
	if err != nil {
		return err
	}
	if gvk := schema.FromAPIVersionAndKind(stringAt(config, "apiVersion"), stringAt(config, "kind")); gvk != x.shape().resource.GroupVersionKind() {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", gvk))
	}
	w.upsert, w.applied = true, true
	x.store.mu.Lock()
	r, created, err := x.store.apply(x.c, x.key(), config, w, boolParam(q, "force"))
	x.store.mu.Unlock()
	if err != nil {
		return err
	}
	return x.respond(codeOf(created), r)
}

// configuration reads the configuration from the body.
func (x *call) configuration() (object, error) {
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	encoded, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	config, err := decodeObject(encoded)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}

	dropNulls(config)
	if err := checkShape(config); err != nil {
		return nil, err
	}
	if len(sliceAt(metadataOf(config), "managedFields")) > 0 {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	return config, nil
}

func dropNulls(m object) {
	for name, value := range m {
		switch v := value.(type) {
		case nil:
			delete(m, name)
		case object:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if item, ok := item.(object); ok {
					dropNulls(item)
				}
			}
		}
	}
}

// apply merges a configuration into an object, or creates the object. The caller holds the lock.
func (s *store) apply(c *collection, key types.NamespacedName, config object, w write, force bool) (*record, bool, error) {
	config = writable(c.def, config, w)
	wanted := leavesOf(config)
	me := &manager{
		name: w.manager, operation: "Apply", apiVersion: stringAt(config, "apiVersion"), subresource: w.subresource,
		time: now(), fields: map[string]bool{},
	}
	for path := range wanted {
		me.fields[path] = true
	}
	old := c.root.get(pathOf(key))
	if old == nil {
		if stringAt(metadataOf(config), "name") == "" && w.subresource == "" {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf(
				"the name of the object (%s based on URL) was undeterminable: name must be provided", key.Name))
		}
		writeManagers(config, []*manager{me})
		return s.update(c, key, config, w)
	}
	before := old.tree()
	managers := readManagers(before)
	if err := conflicts(managers, me, leavesOf(before), wanted); err != nil && !force {
		return nil, false, err
	}
	after := merge(old.tree(), config).(object)
	for _, path := range abandoned(managers, me) {
		removePath(after, strings.Split(path, fieldSeparator))
	}
	managers = setFields(managers, me, leavesOf(before), leavesOf(after), wanted)
	delete(metadataOf(after), "resourceVersion")
	setOrDrop(metadataOf(after), "resourceVersion", metadataOf(config)["resourceVersion"])
	after["kind"], after["apiVersion"] = config["kind"], config["apiVersion"]
	writeManagers(after, managers)
	return s.update(c, key, after, w)
}

// writable returns the part of a configuration that the path of the request may write. The rest is neither applied nor
// owned.
func writable(d *definition, config object, w write) object {
	switch {
	case d.NoStatus:
	case w.subresource == "":
		delete(config, "status")
	default:
		out := object{"kind": config["kind"], "apiVersion": config["apiVersion"], "metadata": object{}}
		setOrDrop(out, "status", config["status"])
		out["metadata"] = statusConfig(d, metadataOf(config))
		return out
	}
	return config
}

// statusConfig returns the metadata that may be applied with a status; see statusMetadata.
func statusConfig(d *definition, meta object) object {
	out := maps.Clone(meta)
	maps.DeleteFunc(out, func(name string, _ any) bool {
		identity := slices.Contains([]string{"name", "namespace", "uid", "resourceVersion"}, name)
		return !identity && (d.custom || slices.Contains(d.statusKeeps, name))
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
func merge(have, config any) any {
	switch want := config.(type) {
	case object:
		into, ok := have.(object)
		if !ok {
			return config
		}
		for name, value := range want {
			into[name] = merge(into[name], value)
		}
		return into
	case []any:
		into, ok := have.([]any)
		keys := listKeys(want)
		if !ok || keys == nil || !uniquelyKeyed(into, keys) {
			return config
		}
		for _, item := range want {
			key := keyOf(item.(object), keys)
			at := slices.IndexFunc(into, func(o any) bool { return keyOf(o.(object), keys) == key })
			if at < 0 {
				into = append(into, item)
				continue
			}
			into[at] = merge(into[at], item)
		}
		return into
	}
	return config
}

// removePath removes a field and returns the rest. "." removes the whole value.
func removePath(at any, path []string) any {
	if len(path) == 0 || path[0] == "." {
		return nil
	}
	switch v := at.(type) {
	case object:
		name := strings.TrimPrefix(path[0], "f:")
		child, ok := v[name]
		if !ok {
			return at
		}
		setOrDrop(v, name, removePath(child, path[1:]))
		return v
	case []any:
		keys := listKeys(v)
		if keys == nil {
			return at
		}
		i := slices.IndexFunc(v, func(o any) bool { return keyOf(o.(object), keys) == path[0] })
		if i < 0 {
			return at
		}
		if item := removePath(v[i], path[1:]); item != nil {
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
