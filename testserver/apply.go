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

// apply is server-side apply (KEP-555): the fields of a configuration become the manager's, those that it applied
// before and no longer has are removed unless somebody else owns them, and a field that another manager has set to
// another value is a conflict unless force is set. There are no schemas here: lists are merged by the keys that the
// built-in types use (see listKeys) and are otherwise owned as a whole.
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

// configuration reads what is to be applied.
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

// apply merges a configuration into an object, or creates it. The caller holds the lock.
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
	managers = own(managers, me, leavesOf(before), leavesOf(after), wanted)
	delete(metadataOf(after), "resourceVersion")
	setOrDrop(metadataOf(after), "resourceVersion", metadataOf(config)["resourceVersion"])
	after["kind"], after["apiVersion"] = config["kind"], config["apiVersion"]
	writeManagers(after, managers)
	return s.update(c, key, after, w)
}

// writable is the part of a configuration that its path may write: what it may not is neither applied nor owned.
func writable(d *definition, config object, w write) object {
	switch {
	case d.NoStatus:
	case w.subresource == "":
		delete(config, "status")
	default:
		out := object{"kind": config["kind"], "apiVersion": config["apiVersion"], "metadata": object{}}
		setOrDrop(out, "status", config["status"])
		for _, name := range []string{"name", "namespace", "uid", "resourceVersion"} {
			setOrDrop(metadataOf(out), name, metadataOf(config)[name])
		}
		return out
	}
	return config
}

// conflicts is the 409 for fields that other managers have set to other values.
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

// readable writes a field path for people: ".spec.replicas".
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

// abandoned returns the fields that a manager applied before, does not apply any more, and nobody else owns, deepest
// first.
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
		return strings.Compare(a, b) // "." first: an item goes whole, before the keys that name it
	})
	return out
}

// ownedElsewhere tells whether somebody else owns a field or, for a thing that can be emptied, anything in it; or the
// manager itself still does.
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

// own gives a manager exactly the fields that it applied. Others lose those that it has changed; what has the same value
// is shared.
func own(all []*manager, me *manager, before, after, wanted map[string]any) []*manager {
	found := false
	for i, m := range all {
		if m.same(me) {
			found = true
			if maps.Equal(m.fields, me.fields) && reflect.DeepEqual(before, after) {
				me.time = m.time // nothing changes, and nothing is to be written
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

// merge puts config over have: objects member by member, keyed lists item by item, anything else whole.
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

// removePath removes a field; "." removes the thing before it.
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
