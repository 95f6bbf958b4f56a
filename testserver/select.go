package testserver

import (
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection are the objects of a collection that a request selects.
type selection struct {
	namespace string // "" means all namespaces
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection parses selectors. A field that the resource does not support is a 400.
func newSelection(d *definition, namespace, label, field string) (selection, error) {
	s := selection{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	var err error
	if label != "" {
		if s.labels, err = labels.Parse(label); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
	}
	if field == "" {
		return s, nil
	}
	if s.fields, err = fields.ParseSelector(field); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range s.fields.Requirements() {
		if !d.selectable(r.Field) {
			why := fmt.Sprintf("field label not supported: %s", r.Field)
			if d.fields == nil && !d.custom {
				why = fmt.Sprintf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, r.Field)
			}
			return s, apierrors.NewBadRequest(why)
		}
	}
	return s, nil
}

// everything reports whether there are no selectors besides the namespace.
func (s selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

func (s selection) matches(r *record) bool {
	return (s.namespace == "" || r.key.Namespace == s.namespace) &&
		s.labels.Matches(labels.Set(r.labels)) && (s.fields.Empty() || s.fields.Matches(recordFields{r}))
}

// bounds returns the paths between which the selected objects are. "0" is the character after "/".
func (s selection) bounds() (from, until string) {
	if s.namespace == "" {
		return "", ""
	}
	return s.namespace + "/", s.namespace + "0"
}

// scan yields the selected records of a state, beginning at path from.
func (s selection) scan(root *node, from string) iter.Seq[*record] {
	first, until := s.bounds()
	return func(yield func(*record) bool) {
		for r := range root.scan(max(first, from), until) {
			if s.matches(r) && !yield(r) {
				return
			}
		}
	}
}

// remaining counts the records from path from to the end of the namespace. It ignores the selectors.
func (s selection) remaining(root *node, from string) int {
	_, until := s.bounds()
	if until == "" {
		return root.len() - root.rank(from)
	}
	return root.rank(until) - root.rank(from)
}

// recordFields gives field selectors access to a record.
type recordFields struct{ *record }

func (f recordFields) Has(name string) bool { _, ok := f.look(name); return ok }

func (f recordFields) Get(name string) string { v, _ := f.look(name); return v }

func (f recordFields) look(name string) (string, bool) {
	switch name {
	case "metadata.name":
		return f.key.Name, true
	case "metadata.namespace":
		return f.key.Namespace, true
	}
	for _, have := range f.fields {
		if have.name == name {
			return have.value, true
		}
	}
	return "", false
}
