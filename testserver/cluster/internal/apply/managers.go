package apply

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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

// managers implement registry.Managers.
type managers struct {
	kind  Kind
	types types
	empty func(schema.GroupVersionKind) object.Tree // an object without contents, to which a new object is compared
	// convert returns a tree in another version, which has the same contents otherwise.
	convert func(tree object.Tree, to schema.GroupVersion) (object.Tree, error)

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
		live = m.empty(gvk)
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
		live = emptyCustom(gvk) // not one with the null values of Go types, which would stay in the result
	}
	applied := newDocument(configuration)
	out, err := manager.Apply(newDocument(live), applied, by.Name, force)
	if err != nil {
		return nil, unexpected(err)
	}
	tree, err := treeOf(out)
	if err != nil {
		return nil, err
	}
	return copied(tree).(object.Tree), nil
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
	made, err := managedfields.NewDefaultFieldManager(m.types, converter{m}, defaulter{}, creater{m}, gvk, hub,
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
	tree, err := c.convert(d.Object, gv)
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
	return newDocument(c.empty(gvk)), nil
}
