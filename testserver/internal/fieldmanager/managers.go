package fieldmanager

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Kind describes the resource of managers.
type Kind struct {
	Group, Kind string
	// Resets remove the fields that a write ignores, by the subresource of the write ("" is the resource itself) and by
	// API version. The owners of ignored fields do not change.
	Resets map[string]map[fieldpath.APIVersion]fieldpath.Filter
}

// Types are the types of a kind in its versions.
type Types struct {
	// Of returns the type of the objects of a version. ok is false if there is no such version.
	Of func(schema.GroupVersionKind) (of typed.ParseableType, ok bool)
	// Empty returns an object without contents, to which a new object is compared. Nil: one with kind and apiVersion.
	Empty func(schema.GroupVersionKind) object.Tree
	// Convert returns a tree in another version. It must not change the tree. Nil: it changes only apiVersion.
	Convert func(tree object.Tree, to schema.GroupVersion) (object.Tree, error)
}

// New returns the managers of a kind.
func New(k Kind, t Types) registry.Managers {
	if t.Empty == nil {
		t.Empty = empty
	}
	if t.Convert == nil {
		t.Convert = relabeled
	}
	return &managers{kind: k, types: t}
}

func empty(gvk schema.GroupVersionKind) object.Tree {
	return object.Tree{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}
}

func relabeled(tree object.Tree, to schema.GroupVersion) (object.Tree, error) {
	out := maps.Clone(tree)
	out["apiVersion"] = to.String()
	return out, nil
}

// managers implement registry.Managers.
type managers struct {
	kind  Kind
	types Types

	mu       sync.Mutex // guards the field below
	managers map[path]*managedfields.FieldManager
}

// path is where a request writes.
type path struct{ served, subresource string }

// Updated implements registry.Managers.
func (m *managers) Updated(by registry.Manager, live, after object.Tree) (object.Tree, error) {
	manager, gvk, err := m.manager(by)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = m.types.Empty(gvk)
	}
	before, fresh := newDocument(live), newDocument(after)
	out, err := manager.Update(before, fresh, by.Name)
	if err != nil {
		// As in kube-apiserver, the write succeeds. It keeps the managers, because a conversion may work again later.
		fresh.SetManagedFields(before.entries)
		out = fresh
	}
	return treeOf(out)
}

// Applied implements registry.Managers.
func (m *managers) Applied(by registry.Manager, live, configuration object.Tree, force bool) (object.Tree, error) {
	manager, gvk, err := m.manager(by)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = empty(gvk) // not Types.Empty, because the null values of Go types would stay in the result
	}
	out, err := manager.Apply(newDocument(live), newDocument(configuration), by.Name, force)
	if err != nil {
		err = Unexpected(err)
		if status := new(apierrors.StatusError); errors.As(err, &status) && status.ErrStatus.Details != nil {
			// The library ranges over a map of managers. Of one manager, the order of the fields stays.
			slices.SortStableFunc(status.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int { return cmp.Compare(a.Message, b.Message) })
		}
		return nil, err
	}
	tree, err := treeOf(out)
	if err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(tree), nil
}

// Unexpected returns the answer of kube-apiserver to an error that it does not classify: 500 with the text, and without
// a reason. A Status stays as it is.
func Unexpected(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// manager returns the library's manager for a path. It is built once.
func (m *managers) manager(by registry.Manager) (*managedfields.FieldManager, schema.GroupVersionKind, error) {
	gvk := schema.GroupVersionKind{Group: m.kind.Group, Version: by.Served, Kind: m.kind.Kind}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := path{by.Served, by.Subresource}
	if have := m.managers[at]; have != nil {
		return have, gvk, nil
	}
	hub := schema.GroupVersion{Group: m.kind.Group, Version: runtime.APIVersionInternal}
	made, err := managedfields.NewDefaultFieldManager(m, converter{m}, defaulter{}, creater{m}, gvk, hub,
		by.Subresource, m.kind.Resets[by.Subresource])
	if err != nil {
		return nil, gvk, fmt.Errorf("testserver: field manager of %v: %w", gvk, err)
	}
	if m.managers == nil {
		m.managers = map[path]*managedfields.FieldManager{}
	}
	m.managers[at] = made
	return made, gvk, nil
}

func treeOf(o runtime.Object) (object.Tree, error) {
	d, ok := o.(*document)
	if !ok {
		return nil, fmt.Errorf("testserver: managed fields returned a %T", o)
	}
	return d.tree()
}

// ObjectToTyped returns the typed value of a document.
func (m *managers) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	parseable, ok := m.types.Of(gvk)
	d, isDocument := o.(*document)
	if !ok || !isDocument {
		return nil, runtime.NewNotRegisteredErrForKind("testserver", gvk)
	}
	return parseable.FromUnstructured(d.Object, options...)
}

// TypedToObject returns a document.
func (m *managers) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	tree, ok := value.AsValue().Unstructured().(object.Tree)
	if !ok {
		return nil, errors.New("testserver: a typed value is no object")
	}
	return &document{Unstructured: unstructured.Unstructured{Object: tree}}, nil
}

// converter converts documents between versions. The internal version, through which kube-apiserver converts, is every
// version here: a document stays as it is until it gets an API version.
type converter struct{ *managers }

var errNotUsed = errors.New("testserver: managed fields do not use this conversion")

// ConvertToVersion returns a document in the version.
func (c converter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	d, isDocument := in.(*document)
	gv, isVersion := to.(schema.GroupVersion)
	if !isDocument || !isVersion {
		return nil, errNotUsed
	}
	if gv.Version == runtime.APIVersionInternal || d.GetAPIVersion() == gv.String() {
		return d, nil
	}
	tree, err := c.types.Convert(d.Object, gv)
	if err != nil {
		return nil, err
	}
	return &document{Unstructured: unstructured.Unstructured{Object: tree}, entries: d.entries}, nil
}

// Convert is not used.
func (converter) Convert(_, _, _ any) error { return errNotUsed }

// ConvertFieldLabel is not used.
func (converter) ConvertFieldLabel(schema.GroupVersionKind, string, string) (label, value string, err error) {
	return "", "", errNotUsed
}

// defaulter sets no defaults: the caller decodes what was merged, and that sets them.
type defaulter struct{}

func (defaulter) Default(runtime.Object) {}

// creater makes objects without contents.
type creater struct{ *managers }

// New returns such an object.
func (c creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return newDocument(c.types.Empty(gvk)), nil
}
