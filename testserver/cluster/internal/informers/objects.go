package informers

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// objects reads one resource of a store as Go values. It is an indexer for listers: only the methods that listers call
// are there. A value is decoded when it is read first, and kept with the record.
type objects struct {
	cache.Indexer // nil: the methods that listers do not call

	factory *Factory
	kind    schema.GroupVersionKind
	create  func() runtime.Object  // nil: values are unstructured
	plural  atomic.Pointer[string] // name of the resource when it was found last; nil before
}

// view returns the present objects. ok is false if the server does not have the resource.
func (o *objects) view() (d *registry.Definition, v store.View, ok bool) {
	s := o.factory.source()
	if s == nil {
		return nil, v, false
	}
	if plural := o.plural.Load(); plural != nil {
		if c, d, ok := s.Find(o.kind.Group, o.kind.Version, *plural); ok && d.Kind == o.kind.Kind {
			return d, s.View(c), true
		}
	}
	if d = o.factory.Kind(o.kind); d == nil {
		return nil, v, false
	}
	c, d, ok := s.Find(d.Group, o.kind.Version, d.Plural)
	if !ok {
		return nil, v, false
	}
	o.plural.Store(&d.Plural)
	return d, s.View(c), true
}

// value returns the Go value of a record. All factories share it.
func (o *objects) value(d *registry.Definition, r *store.Record) (runtime.Object, error) {
	value, err := store.Value(r, o.kind, func() (runtime.Object, error) { return o.decode(d, r) })
	if err != nil {
		return nil, fmt.Errorf("informers: decode %s %s: %w", d.Plural, r.Path, err)
	}
	return value, nil
}

func (o *objects) decode(d *registry.Definition, r *store.Record) (runtime.Object, error) {
	tree, err := d.Schema.Convert(o.kind.Version, r.Tree())
	if err != nil {
		return nil, err
	}
	tree["apiVersion"], tree["kind"] = o.kind.GroupVersion().String(), o.kind.Kind
	if o.create == nil {
		return &unstructured.Unstructured{Object: tree}, nil
	}
	out := o.create()
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out)
}

// in returns the objects of a namespace, or of all namespaces if it is empty.
func (o *objects) in(namespace string) ([]any, error) {
	d, view, ok := o.view()
	if !ok {
		return nil, nil
	}
	if view.Len() == 0 { // as are most resources that admission reads for each write
		return nil, nil
	}
	selected, err := store.NewSelection(d, d.Version, namespace, "", "")
	if err != nil {
		return nil, err
	}
	var out []any
	for r := range selected.Scan(view, "") {
		value, err := o.value(d, r)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// GetByKey returns an object by "namespace/name" or "name".
func (o *objects) GetByKey(key string) (item any, exists bool, err error) {
	d, view, ok := o.view()
	if !ok {
		return nil, false, nil
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, err
	}
	r := view.Get(api.Key{Namespace: namespace, Name: name})
	if r == nil {
		return nil, false, nil
	}
	item, err = o.value(d, r)
	return item, err == nil, err
}

// List returns all objects. An object that cannot be decoded is missing.
func (o *objects) List() []any {
	all, _ := o.in("") // the interface has no error
	return all
}

// Index returns the objects in the namespace of an object.
func (o *objects) Index(_ string, of any) ([]any, error) {
	m, err := meta.Accessor(of)
	if err != nil {
		return nil, err
	}
	return o.in(m.GetNamespace())
}

// ByIndex returns the objects of a namespace.
func (o *objects) ByIndex(_, namespace string) ([]any, error) { return o.in(namespace) }
