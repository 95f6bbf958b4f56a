package typed

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// hub is a value in the internal version of Kubernetes, which a step of a write left for the next one.
type hub struct {
	kind  schema.GroupVersionKind // of the tree
	value runtime.Object
}

// Leave leaves the value of a tree, in the internal version, for the next step of a write. v may be nil.
func Leave(v *registry.Values, kind schema.GroupVersionKind, value runtime.Object) {
	if v != nil {
		v.Sent = hub{kind, value}
	}
}

// Take returns the value of a tree in the internal version, for the rules of Kubernetes. That is the value that an
// earlier step of the write left in v, with the metadata of the tree, or else a conversion of the tree. The caller owns
// the value. v may be nil.
//
// The entries of managedFields have no fieldsV1 in the value: no rule reads these sets, and they are a large part of an
// object. Untyped puts them back.
func Take(v *registry.Values, kind schema.GroupVersionKind, tree object.Tree) (runtime.Object, error) {
	if v != nil {
		if left, ok := v.Sent.(hub); ok && left.kind == kind && setMetadata(left.value, object.MapAt(tree, "metadata")) {
			v.Sent = nil
			return left.value, nil
		}
	}
	versioned, err := take(v, kind, tree)
	if err != nil {
		return nil, err
	}
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	return out, nil
}

// take is Take in the version of the tree.
func take(v *registry.Values, kind schema.GroupVersionKind, tree object.Tree) (runtime.Object, error) {
	meta := object.MapAt(tree, "metadata")
	if v != nil {
		sent, ok := v.Sent.(runtime.Object)
		v.Sent = nil
		if ok && sent.GetObjectKind().GroupVersionKind() == kind && setMetadata(sent, meta) {
			return sent, nil
		}
	}
	out, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	if meta != nil {
		tree = maps.Clone(tree)
		tree["metadata"] = withoutSets(meta)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out); err != nil {
		return nil, fmt.Errorf("typed: decode a %s: %w", kind.Kind, err)
	}
	return out, nil
}

// withoutSets returns metadata whose managers have no sets of fields. It shares the other parts.
func withoutSets(meta object.Tree) object.Tree {
	entries := object.SliceAt(meta, managedFields)
	if len(entries) == 0 {
		return meta
	}
	light := make([]any, len(entries))
	for i, e := range entries {
		light[i] = e
		if e, ok := e.(object.Tree); ok {
			e = maps.Clone(e)
			delete(e, "fieldsV1")
			light[i] = e
		}
	}
	meta = maps.Clone(meta)
	meta[managedFields] = light
	return meta
}

const managedFields = "managedFields"

// setMetadata replaces the metadata of a value. It returns false if they have a wrong type.
func setMetadata(value runtime.Object, meta object.Tree) bool {
	of, ok := value.(metav1.ObjectMetaAccessor)
	if !ok {
		return false
	}
	into, ok := of.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return false
	}
	*into = metav1.ObjectMeta{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(withoutSets(meta), into) == nil
}

// Untyped returns the tree of a value that comes from Take for a tree, in a version. It sets the kind of the value. The
// rules of Kubernetes may change everything except the entries of managedFields.
func Untyped(value runtime.Object, kind schema.GroupVersionKind, from object.Tree) (object.Tree, error) {
	value.GetObjectKind().SetGroupVersionKind(kind)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil, err
	}
	keepManagers(object.MapAt(tree, "metadata"), from)
	return tree, nil
}

// Outline is Untyped for callers that leave the value: the tree has only the kind, the version and the metadata.
func Outline(value runtime.Object, kind schema.GroupVersionKind, from object.Tree) (object.Tree, error) {
	of, ok := value.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, fmt.Errorf("typed: %T has no metadata", value)
	}
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of.GetObjectMeta())
	if err != nil {
		return nil, err
	}
	keepManagers(meta, from)
	return object.Tree{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": meta}, nil
}

// keepManagers gives metadata the managers of the tree that their value came from.
func keepManagers(meta, from object.Tree) {
	if entries := object.SliceAt(object.MapAt(from, "metadata"), managedFields); meta[managedFields] != nil {
		meta[managedFields] = entries
	}
}

// WithoutEmptyLists replaces the empty lists in a part of a tree by null: the storage of kube-apiserver, which is
// protobuf, has no empty lists.
func WithoutEmptyLists(value any) {
	switch v := value.(type) {
	case object.Tree:
		for name, member := range v {
			if list, ok := member.([]any); ok && len(list) == 0 {
				v[name] = nil
				continue
			}
			WithoutEmptyLists(member)
		}
	case []any:
		for _, item := range v {
			WithoutEmptyLists(item)
		}
	}
}
