package builtin

import (
	"cmp"
	"strings"

	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// selectable is a field that selectors may use. An empty path is the name. A path after a bar is read if the path
// before it has no value. missing is the value of a field that no path has.
type selectable struct{ name, path, missing string }

// fieldsOf returns a function that reads fields.
func fieldsOf(fields []selectable) func(object.Tree) []registry.FieldValue {
	if len(fields) == 0 {
		return nil
	}
	paths := make([][][]string, len(fields))
	for i, f := range fields {
		for path := range strings.SplitSeq(cmp.Or(f.path, f.name), "|") {
			paths[i] = append(paths[i], strings.Split(path, "."))
		}
	}
	return func(tree object.Tree) []registry.FieldValue {
		out := make([]registry.FieldValue, len(fields))
		for i, f := range fields {
			value := ""
			for _, path := range paths[i] {
				value = cmp.Or(value, object.TextAt(tree, path...))
			}
			out[i] = registry.FieldValue{Name: f.name, Value: cmp.Or(value, f.missing)}
		}
		return out
	}
}

// plain returns fields whose names are their paths.
func plain(names ...string) []selectable {
	out := make([]selectable, len(names))
	for i, name := range names {
		out[i].name = name
	}
	return out
}

// fieldLabels returns the translation of the fields of selectors, with the errors of Kubernetes.
func fieldLabels(d *registry.Definition) func(name, value string) (string, string, error) {
	kind := d.GroupVersionKind()
	return func(name, value string) (string, string, error) {
		return legacyscheme.Scheme.ConvertFieldLabel(kind, name, value)
	}
}
