package builtin

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/cluster/internal/causes"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// rules are the rules for the contents of one resource. It implements registry.Schema.
type rules struct {
	definition *registry.Definition
	resource   *row
	claims     beginner // may be nil
	stored     schema.GroupVersionKind
	spares     *allSpares
}

// internal is the version of Kubernetes in which the strategies see objects.
func internal(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
}

func newRules(d *registry.Definition, r *row) registry.Schema {
	s := &rules{definition: d, resource: r, stored: d.GroupVersionKind(), spares: &allSpares{}}
	if r.alias.Resource != "" {
		s.stored = schema.GroupVersionKind{Group: r.alias.Group, Version: "v1", Kind: r.kind}
	}
	if r.claims != nil {
		s.claims = r.claims()
		return claimer{s}
	}
	return s
}

// beginner is what the storage of a resource does besides its strategy, because it depends on other objects.
type beginner interface {
	begin(obj, before runtime.Object) error // before is nil for a creation
	claim(before, after object.Tree) bool
	reset()
}

// claimer are the rules of a resource whose objects hold something. It implements registry.Claimer.
type claimer struct{ *rules }

// Claim implements registry.Claimer.
func (c claimer) Claim(before, after object.Tree) bool { return c.claims.claim(before, after) }

// Release implements registry.Claimer.
func (c claimer) Release() { c.claims.reset() }

// Fresh implements registry.Claimer.
func (c claimer) Fresh() registry.Schema {
	next := *c.rules
	next.claims = c.resource.claims()
	return claimer{&next}
}

// kind returns the kind in the body of a request.
func (s *rules) kind(to registry.Target) schema.GroupVersionKind {
	gvk := s.definition.In(to.Served).GroupVersionKind()
	for _, a := range s.resource.actions {
		if a.name == to.Subresource && a.kind != "" {
			gvk.Kind = a.kind
			if a.version != "" {
				gvk.Group, gvk.Version = a.group, a.version
			}
		}
	}
	return gvk
}

// Create implements registry.Schema. With a subresource it validates the body of an action.
func (s *rules) Create(op registry.Operation, tree object.Tree) (object.Tree, []string, error) {
	gvk := s.kind(op.Target)
	obj, err := s.take(op.Values, gvk, tree)
	if err != nil {
		return nil, nil, err
	}
	if s.resource.strategy == nil || op.Subresource != "" {
		return tree, nil, checkAction(obj)
	}
	if s.claims != nil {
		if err := s.claims.begin(obj, nil); err != nil {
			return nil, nil, err
		}
	}
	x := s.context(op, "create", obj)
	status := statusOf(op, obj)
	s.resource.strategy.PrepareForCreate(x, obj)
	status.restore(obj)
	if errs := s.validateNew(x, op, obj); len(errs) > 0 {
		return nil, nil, s.invalid(obj, errs)
	}
	x.warn(s.resource.strategy.WarningsOnCreate(x, obj))
	s.resource.strategy.Canonicalize(obj)
	stored, err := s.store(op, obj, tree)
	return stored, x.warnings, err
}

// Update implements registry.Schema.
func (s *rules) Update(op registry.Operation, before, tree object.Tree) (object.Tree, []string, error) {
	if op.Subresource == bindingName {
		return bound(tree), nil, nil
	}
	strategy := s.updateStrategy(op.Subresource)
	if strategy == nil {
		return nil, nil, apierrors.NewMethodNotSupported(s.definition.GroupResource(), "update")
	}
	old, err := s.load(before)
	if err != nil {
		return nil, nil, err
	}
	obj, err := s.take(op.Values, s.definition.In(op.Served).GroupVersionKind(), tree)
	if err != nil {
		return nil, nil, err
	}
	if s.claims != nil && op.Subresource == "" {
		metaOf(obj).SetUID(metaOf(old).GetUID())
		if err := s.claims.begin(obj, old); err != nil {
			return nil, nil, err
		}
	}
	if m := metaOf(obj); m.GetResourceVersion() == "" {
		m.SetResourceVersion(metaOf(old).GetResourceVersion())
	}
	x := s.context(op, "update", obj)
	if op.Direct && op.Subresource == "" {
		strategy = direct{strategy, statusOf(op, obj)}
	}
	if err := rest.BeforeUpdate(strategy, x, obj, old); err != nil {
		return nil, nil, causes.Order(err)
	}
	stored, err := s.store(op, obj, tree)
	return stored, x.warnings, err
}

// updateStrategy returns the rules for a write to the object or to a subresource, or nil if it cannot be written.
func (s *rules) updateStrategy(subresource string) rest.RESTUpdateStrategy {
	switch subresource {
	case "", scale.name: // a Scale is written as the object, with other replicas
		return s.resource.strategy
	case "status":
		return s.resource.status
	}
	for _, p := range s.resource.parts {
		if p.name == subresource {
			return p.strategy
		}
	}
	return nil
}

// Convert implements registry.Schema. The result shares parts with stored.
func (s *rules) Convert(served string, stored object.Tree) (object.Tree, error) {
	gvk := s.definition.In(served).GroupVersionKind()
	if gvk == s.stored {
		out := make(object.Tree, len(stored)+2)
		for name, value := range stored {
			out[name] = value
		}
		out["kind"], out["apiVersion"] = gvk.Kind, gvk.GroupVersion().String()
		return out, nil
	}
	obj, err := s.load(stored)
	if err != nil {
		return nil, err
	}
	versioned, err := convert(obj, gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	tree, err := typed.Untyped(versioned, gvk, stored)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return tree, nil
}

// load converts a stored object into the internal version, without the contents of managedFields.
func (s *rules) load(stored object.Tree) (runtime.Object, error) {
	return s.take(nil, s.stored, stored)
}

// store converts an object into the stored version. The result has no kind and no apiVersion. It has what
// kube-apiserver adds when it reads the object from etcd: the defaults, and null instead of an empty list, which
// protobuf does not have.
func (s *rules) store(op registry.Operation, obj runtime.Object, from object.Tree) (object.Tree, error) {
	versioned, err := convert(obj, s.stored.GroupVersion())
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(versioned)
	if op.Values != nil {
		op.Values.Stored = obj
	}
	tree, err := typed.Untyped(versioned, schema.GroupVersionKind{}, from)
	if err == nil && !s.resource.raw {
		typed.WithoutEmptyLists(tree)
	}
	return tree, unexpected(err)
}

// take returns the value of a tree, which has its defaults and comes in the given version, in the internal version.
func (s *rules) take(v *registry.Values, gvk schema.GroupVersionKind, tree object.Tree) (runtime.Object, error) {
	obj, err := typed.Take(v, gvk, tree)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled: %v", gvk.Kind, gvk.Version, errors.Unwrap(err)))
	}
	return obj, nil
}

// untyped converts an object into a tree with the given kind.
func untyped(obj runtime.Object, gvk schema.GroupVersionKind) (object.Tree, error) {
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	return tree, unexpected(err)
}

// unexpected returns the answer to an error that only a wrong Go type can have.
func unexpected(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewInternalError(err)
}

func convert(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(obj, to)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return out, nil
}

func metaOf(obj runtime.Object) metav1.Object { return obj.(metav1.ObjectMetaAccessor).GetObjectMeta() }

// status is the status that a method in Go sent with the rest of an object. The zero value is no status.
type status struct{ value reflect.Value }

func statusOf(op registry.Operation, obj runtime.Object) status {
	if !op.Direct || op.Subresource != "" {
		return status{}
	}
	field := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !field.IsValid() || field.IsZero() {
		return status{}
	}
	kept := reflect.New(field.Type()).Elem()
	kept.Set(reflect.ValueOf(obj.DeepCopyObject()).Elem().FieldByName("Status"))
	return status{kept}
}

// restore sets the status in an object that a strategy prepared.
func (s status) restore(obj runtime.Object) {
	if s.value.IsValid() {
		reflect.ValueOf(obj).Elem().FieldByName("Status").Set(s.value)
	}
}
