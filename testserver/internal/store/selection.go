package store

import (
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Selection are the objects of a collection that a request selects.
type Selection struct {
	namespace string // "" means all namespaces
	labels    labels.Selector
	fields    fields.Selector
	shard     *hashrange.Selector // nil means all
	hashes    hashrange.Set       // of the shard
}

// NewSelection parses selectors. A field that the resource does not support in a served version is a 400.
func NewSelection(d *registry.Definition, served, namespace, label, field string) (Selection, error) {
	s := Selection{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
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
	if d.Field != nil {
		if s.fields, err = s.fields.Transform(d.Field); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
		return s, nil
	}
	for _, r := range s.fields.Requirements() {
		if !d.SelectableIn(served, r.Field) {
			why := fmt.Sprintf("field label not supported: %s", r.Field)
			if d.Fields == nil && !d.Custom {
				why = fmt.Sprintf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, r.Field)
			}
			return s, apierrors.NewBadRequest(why)
		}
	}
	return s, nil
}

// Cut restricts the selection to the objects that a shardSelector selects. An invalid one is a 500, as in
// kube-apiserver.
func (s *Selection) Cut(selector string) error {
	shard, err := hashrange.ParseSelector(selector)
	if err != nil {
		return StorageError(fmt.Errorf("invalid shard selector: %w", err))
	}
	s.shard, s.hashes = &shard, shard.Set()
	return nil
}

// Shard returns what a list says about its shardSelector, or nil if it has none.
func (s Selection) Shard() *metav1.ShardInfo {
	if s.shard == nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: s.shard.String()}
}

// Everything reports whether there are no selectors besides the namespace.
func (s Selection) Everything() bool { return s.labels.Empty() && s.fields.Empty() && s.shard == nil }

// Matches reports whether an object is selected.
func (s Selection) Matches(r *Record) bool {
	return (s.namespace == "" || r.Key.Namespace == s.namespace) && (s.shard == nil || s.inShard(r)) &&
		s.labels.Matches(labels.Set(r.labels)) && (s.fields.Empty() || s.fields.Matches(recordFields{r}))
}

func (s Selection) inShard(r *Record) bool {
	if s.shard.Field == hashrange.Namespace {
		return s.hashes.Contains(hashrange.Hash(r.Key.Namespace))
	}
	return s.hashes.Contains(hashrange.Hash(r.UID()))
}

// bounds returns the paths between which the selected objects are. "0" is the character after "/".
func (s Selection) bounds() (from, until string) {
	if s.namespace == "" {
		return "", ""
	}
	return s.namespace + "/", s.namespace + "0"
}

// Scan yields the selected objects of a view, beginning at path from.
func (s Selection) Scan(v View, from string) iter.Seq[*Record] {
	first, until := s.bounds()
	from = max(first, from)
	s.namespace = "" // the paths say that
	if s.Everything() {
		return v.root.scan(from, until)
	}
	return func(yield func(*Record) bool) {
		for r := range v.root.scan(from, until) {
			if s.Matches(r) && !yield(r) {
				return
			}
		}
	}
}

// Remaining counts the objects from path from to the end of the namespace. It ignores the selectors.
func (s Selection) Remaining(v View, from string) int {
	first, until := s.bounds()
	from = max(first, from)
	if until == "" {
		return v.root.len() - v.root.rank(from)
	}
	return v.root.rank(until) - v.root.rank(from)
}

// recordFields gives field selectors access to a record.
type recordFields struct{ *Record }

func (f recordFields) Has(name string) bool { _, ok := f.look(name); return ok }

func (f recordFields) Get(name string) string { v, _ := f.look(name); return v }

func (f recordFields) look(name string) (string, bool) {
	switch name {
	case "metadata.name":
		return f.Key.Name, true
	case "metadata.namespace":
		return f.Key.Namespace, true
	}
	for _, have := range f.fields {
		if have.Name == name {
			return have.Value, true
		}
	}
	return "", false
}
