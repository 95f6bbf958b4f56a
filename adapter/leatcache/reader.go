package leatcache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/api"
	leat "github.com/leatproject/leat/cache"
)

// in returns the scope that has the objects of a namespace.
func (of *collection) in(namespace string) (*scope, error) {
	if !of.resource.Namespaced {
		return of.scopes[0], nil
	}
	var rest *scope
	for _, s := range of.scopes {
		switch s.namespace {
		case namespace:
			return s, nil
		case "":
			rest = s
		}
	}
	if rest == nil {
		return nil, fmt.Errorf("leatcache: %s of namespace %q are not cached: the options name other namespaces", of.resource, namespace)
	}
	return rest, nil
}

func (of *collection) get(ctx context.Context, key client.ObjectKey, out client.Object, opts []client.GetOption) error {
	var o client.GetOptions
	o.ApplyOptions(opts)
	if !of.resource.Namespaced {
		key.Namespace = ""
	}
	s, err := of.in(key.Namespace)
	if err != nil {
		return err
	}
	snapshot := s.informer.Snapshot()
	object, found := snapshot.Get(api.Key(key))
	copied := snapshot.Copies()
	if !found && s.referenced != nil {
		if object, copied, err = of.fetched(ctx, s, key); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Group: of.key.gvk.Group, Resource: of.key.gvk.Kind}, key.Name)
	}
	to, from := reflect.ValueOf(out), reflect.TypeOf(object)
	if !from.AssignableTo(to.Type()) {
		return fmt.Errorf("leatcache: the cache has a %s, which is not a %s", from, to.Type())
	}
	object = of.own(object, !copied && s.copies(snapshot, o.UnsafeDisableDeepCopy), copied)
	to.Elem().Set(reflect.ValueOf(object).Elem())
	return nil
}

// copies reports whether a read has to copy objects: they are shared, and the reader wants its own.
func (s *scope) copies(snapshot *leat.Snapshot[client.Object], disabled *bool) bool {
	return !snapshot.Copies() && !s.share && (disabled == nil || !*disabled)
}

// own returns the object for a reader. copied says that the object is a copy already, because the cache holds bytes.
func (of *collection) own(object client.Object, copies, copied bool) client.Object {
	if copies {
		object = object.DeepCopyObject().(client.Object)
	}
	if copies || copied {
		object.GetObjectKind().SetGroupVersionKind(of.key.gvk) // a transform may have removed it
	}
	return object
}

// continueNotSupported is the token in every list, as in controller-runtime. A list is complete, or cut by Limit.
const continueNotSupported = "continue-not-supported"

func (of *collection) list(out client.ObjectList, opts []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	if of.onlyReferenced() {
		return fmt.Errorf("leatcache: %s are cached only if they are referenced: list their metadata, or read with the APIReader", of.resource)
	}
	wanted, err := of.requirements(o.FieldSelector)
	if err == nil {
		err = of.checkLabels(o.LabelSelector)
	}
	if err != nil {
		return err
	}
	if !of.resource.Namespaced {
		o.Namespace = ""
	}
	scopes := of.scopes
	if o.Namespace != "" {
		s, err := of.in(o.Namespace)
		if err != nil {
			return err
		}
		scopes = []*scope{s}
	}
	found := []runtime.Object{}
	for _, s := range scopes {
		found = of.read(s, o, wanted, found)
	}
	if err := meta.SetList(out, found); err != nil {
		return fmt.Errorf("leatcache: %w", err)
	}
	out.SetContinue(continueNotSupported)
	return nil
}

// read appends the objects of a scope that the options select.
func (of *collection) read(s *scope, o client.ListOptions, wanted []requirement, found []runtime.Object) []runtime.Object {
	snapshot := s.informer.Snapshot()
	copies := s.copies(snapshot, o.UnsafeDisableDeepCopy)
	every := o.LabelSelector == nil || o.LabelSelector.Empty()
	for object := range s.objects(snapshot, o.Namespace, wanted) {
		if o.Limit > 0 && int64(len(found)) >= o.Limit {
			break
		}
		if every || o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, of.own(object, copies, snapshot.Copies()))
		}
	}
	return found
}

// objects yields the objects of a namespace, or of all namespaces, that have all wanted values.
func (s *scope) objects(snapshot *leat.Snapshot[client.Object], namespace string, wanted []requirement) iter.Seq[client.Object] {
	all := snapshot.All()
	switch {
	case len(wanted) > 0:
		first := wanted[0]
		all = first.index.scopes[s].In(snapshot, first.value(namespace))
	case namespace == "" || s.confined:
	case s.byNamespace != nil:
		all = s.byNamespace.In(snapshot, namespace)
	default:
		all = ofNamespace(snapshot, namespace)
	}
	return func(yield func(client.Object) bool) {
		for _, object := range all {
			if s.hasAll(object, namespace, wanted) && !yield(object) {
				return
			}
		}
	}
}

// hasAll reports whether an object has all wanted values except the first one.
func (s *scope) hasAll(object client.Object, namespace string, wanted []requirement) bool {
	for i, w := range wanted {
		if i > 0 && !w.index.scopes[s].Has(object, w.value(namespace)) {
			return false
		}
	}
	return true
}

// ofNamespace yields the objects of a namespace without an index. It unpacks only these objects.
func ofNamespace(snapshot *leat.Snapshot[client.Object], namespace string) iter.Seq2[api.Key, client.Object] {
	return func(yield func(api.Key, client.Object) bool) {
		for key := range snapshot.Keys() {
			if key.Namespace != namespace {
				continue
			}
			if object, found := snapshot.Get(key); found && !yield(key, object) {
				return
			}
		}
	}
}
