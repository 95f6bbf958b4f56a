package fieldmanager

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
)

// entriesOf parses metadata.managedFields. The result is nil only if there is no such list: an empty list, and a list
// with one empty entry, ask to forget all managers.
func entriesOf(meta object.Tree) []metav1.ManagedFieldsEntry {
	list, ok := meta["managedFields"].([]any)
	if !ok {
		return nil
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(list))
	for _, item := range list {
		entry, _ := item.(object.Tree)
		out = append(out, entryOf(entry))
	}
	return out
}

// Valid reports whether metadata.managedFields is a list of valid entries.
func Valid(meta object.Tree) bool {
	list, _ := meta["managedFields"].([]any)
	for _, item := range list {
		if _, ok := item.(object.Tree); !ok {
			return false
		}
	}
	return len(metav1validation.ValidateManagedFields(entriesOf(meta), field.NewPath("metadata", "managedFields"))) == 0
}

func entryOf(tree object.Tree) metav1.ManagedFieldsEntry {
	out := metav1.ManagedFieldsEntry{
		Manager:     object.StringAt(tree, "manager"),
		Operation:   metav1.ManagedFieldsOperationType(object.StringAt(tree, "operation")),
		APIVersion:  object.StringAt(tree, "apiVersion"),
		FieldsType:  object.StringAt(tree, "fieldsType"),
		Subresource: object.StringAt(tree, "subresource"),
	}
	if t, err := time.Parse(time.RFC3339, object.StringAt(tree, "time")); err == nil {
		out.Time = &metav1.Time{Time: t}
	}
	if fields, ok := tree["fieldsV1"]; ok && fields != nil {
		raw, err := json.Marshal(fields)
		if err != nil {
			raw = nil // a tree consists of JSON values; without them, the set does not decode and the entry is ignored
		}
		out.FieldsV1 = &metav1.FieldsV1{}
		out.FieldsV1.SetRawBytes(raw)
	}
	return out
}

// encodeEntries returns the list of metadata.managedFields, or nil if it is empty.
func encodeEntries(entries []metav1.ManagedFieldsEntry) ([]any, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	out := make([]any, 0, len(entries))
	for _, e := range entries {
		tree := make(object.Tree, 7)
		put := func(name, value string) {
			if value != "" {
				tree[name] = value
			}
		}
		put("manager", e.Manager)
		put("operation", string(e.Operation))
		put("apiVersion", e.APIVersion)
		put("fieldsType", e.FieldsType)
		put("subresource", e.Subresource)
		if e.Time != nil {
			tree["time"] = e.Time.UTC().Format(time.RFC3339)
		}
		if e.FieldsV1 != nil {
			fields, err := object.Decode(e.FieldsV1.GetRawBytes())
			if err != nil {
				return nil, fmt.Errorf("testserver: managed fields of %q: %w", e.Manager, err)
			}
			tree["fieldsV1"] = fields
		}
		out = append(out, tree)
	}
	return out, nil
}
