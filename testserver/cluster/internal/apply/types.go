package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/leatproject/leat/testserver/internal/object"
)

// types gives objects the types with which they are compared and merged.
type types struct {
	find func(schema.GroupVersionKind) (typed.ParseableType, bool)
}

// ObjectToTyped returns the typed value of a document, or of a Go object of a built-in kind.
func (t types) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	parseable, ok := t.find(gvk)
	if !ok {
		return nil, runtime.NewNotRegisteredErrForKind("testserver", gvk)
	}
	if d, ok := o.(*document); ok {
		return parseable.FromUnstructured(d.Object, options...)
	}
	return parseable.FromStructured(o, options...)
}

// TypedToObject returns a document.
func (types) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	tree, ok := value.AsValue().Unstructured().(object.Tree)
	if !ok {
		return nil, fmt.Errorf("testserver: a typed value is no object")
	}
	return &document{Unstructured: unstructured.Unstructured{Object: tree}}, nil
}

// deduced types know no schema: every list has one owner.
func deduced(schema.GroupVersionKind) (typed.ParseableType, bool) {
	return typed.DeducedParseableType, true
}
