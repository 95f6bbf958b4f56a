package fieldmanager

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/testserver/internal/object"
)

// document is a tree as managedfields reads and writes it. Its managedFields are beside the tree, because
// unstructured.Unstructured would convert them by reflection in every access.
type document struct {
	unstructured.Unstructured
	entries []metav1.ManagedFieldsEntry
}

// newDocument returns a document with the contents of tree, which it does not change.
func newDocument(tree object.Tree) *document {
	root := maps.Clone(tree)
	d := &document{Unstructured: unstructured.Unstructured{Object: root}}
	if meta, ok := tree["metadata"].(object.Tree); ok {
		d.entries = entriesOf(meta)
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		root["metadata"] = meta
	}
	return d
}

// GetManagedFields returns the entries.
func (d *document) GetManagedFields() []metav1.ManagedFieldsEntry { return d.entries }

// SetManagedFields replaces the entries.
func (d *document) SetManagedFields(entries []metav1.ManagedFieldsEntry) { d.entries = entries }

// DeepCopyObject returns a copy that shares only the entries, which never change.
func (d *document) DeepCopyObject() runtime.Object {
	return &document{Unstructured: unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.Object)}, entries: d.entries}
}

// tree returns the contents with the entries.
func (d *document) tree() (object.Tree, error) {
	list, err := encodeEntries(d.entries)
	if err != nil {
		return nil, err
	}
	if list == nil {
		if meta, ok := d.Object["metadata"].(object.Tree); ok {
			delete(meta, "managedFields")
		}
		return d.Object, nil
	}
	object.Metadata(d.Object)["managedFields"] = list
	return d.Object, nil
}
