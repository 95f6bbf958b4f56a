package admission

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/cluster/internal/identity"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// request is one write as the plugins see it: attributes with unstructured objects, what can be done with the objects,
// and the recorder of warnings.
type request struct {
	apiadmission.Attributes
	write   *extension.Attributes
	factory *informers.Factory
	object  *unstructured.Unstructured // nil for a deletion
	changed bool
	unread  bool // no plugin after the built-in ones reads the object

	mu       sync.Mutex // guards the field below: validating webhooks are called at the same time
	warnings []string
}

func (c *Chain) request(a *extension.Attributes) *request {
	r := &request{write: a, factory: c.factory}
	as := a.Resource.In(a.Served)
	kind := as.GroupVersionKind()
	name := a.Key.Name
	var obj, old, options runtime.Object
	if a.Object != nil {
		r.object = &unstructured.Unstructured{Object: a.Object}
		obj, kind = r.object, r.object.GroupVersionKind()
		if name == "" {
			name = object.StringAt(object.Metadata(a.Object), "name")
		}
	}
	if a.Old != nil {
		old = &unstructured.Unstructured{Object: a.Old}
	}
	if a.Options != nil {
		options = &unstructured.Unstructured{Object: a.Options}
	}
	namespace := a.Key.Namespace
	if a.Resource.IsNamespace() {
		namespace = name // kube-apiserver sees a namespace as an object in itself
	}
	r.Attributes = apiadmission.NewAttributesRecord(obj, old, kind, namespace, name,
		schema.GroupVersionResource{Group: as.Group, Version: as.Version, Resource: as.Plural}, a.Subresource,
		apiadmission.Operation(a.Operation), options, a.DryRun, identity.Info(a.User))
	return r
}

// finish writes the results into the attributes of the server.
func (r *request) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write.Warnings = append(r.write.Warnings, r.warnings...)
	r.warnings = nil
	if r.changed {
		r.write.Object, r.write.Changed = r.object.Object, true
	}
}

// AddWarning implements warning.Recorder.
func (r *request) AddWarning(_, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, text)
}

// replace gives the object another content. value is its Go value, or nil.
func (r *request) replace(tree object.Tree, value any) {
	r.object.Object, r.changed = tree, true
	if r.write.Values != nil {
		r.write.Values.Sent = value
	}
}

// become gives the object the content of a value in the internal version. If no plugin reads the object, the value
// stays as it is for the next step, without defaults as in kube-apiserver.
func (r *request) become(value runtime.Object) error {
	kind := r.object.GroupVersionKind()
	if r.unread && r.write.Values != nil && r.GetSubresource() == "" {
		tree, err := typed.Outline(value, kind, r.object.Object)
		if err != nil {
			return err
		}
		r.replace(tree, nil)
		typed.Leave(r.write.Values, kind, value)
		return nil
	}
	versioned, err := legacyscheme.Scheme.UnsafeConvertToVersion(value, kind.GroupVersion())
	if err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	legacyscheme.Scheme.Default(versioned)
	tree, err := typed.Untyped(versioned, kind, r.object.Object)
	if err != nil {
		return err
	}
	r.replace(tree, versioned)
	return nil
}

// A request is also the ObjectInterfaces of its plugins.

// GetObjectCreater implements admission.ObjectInterfaces.
func (r *request) GetObjectCreater() runtime.ObjectCreater { return r }

// GetObjectTyper implements admission.ObjectInterfaces.
func (r *request) GetObjectTyper() runtime.ObjectTyper { return r }

// GetObjectDefaulter implements admission.ObjectInterfaces.
func (r *request) GetObjectDefaulter() runtime.ObjectDefaulter { return r }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (r *request) GetObjectConvertor() runtime.ObjectConvertor { return r }

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (r *request) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return r }

// New returns an object without content.
func (r *request) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{Object: object.Tree{}}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// ObjectKinds returns the kind of an object.
func (r *request) ObjectKinds(o runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{o.GetObjectKind().GroupVersionKind()}, false, nil
}

// Recognizes reports whether objects of a kind can be handled.
func (r *request) Recognizes(schema.GroupVersionKind) bool { return true }

// Default sets the defaults of an object. An object that does not decode gets its error later, from the server.
func (r *request) Default(o runtime.Object) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	to := registry.Target{Served: u.GroupVersionKind().Version, Subresource: r.GetSubresource(), Patched: true}
	if tree, _, err := r.write.Resource.Schema.Decode(to, runtime.ContentTypeJSON, body); err == nil {
		u.Object = tree
	}
}

// Convert copies an object into another one, in the version of the other one.
func (r *request) Convert(in, out, _ any) error {
	from, ok := in.(*unstructured.Unstructured)
	into, isTree := out.(*unstructured.Unstructured)
	if !ok || !isTree {
		return fmt.Errorf("admission: convert %T into %T", in, out)
	}
	tree, err := r.converted(from, into.GroupVersionKind())
	if err != nil {
		return err
	}
	if into == r.object {
		r.replace(tree, nil)
		return nil
	}
	into.Object = tree
	return nil
}

// converter is implemented by the Schema of a custom resource.
type converter interface {
	Converted(tree object.Tree, to string) (object.Tree, error)
}

// converted returns a copy of an object in another version.
func (r *request) converted(from *unstructured.Unstructured, to schema.GroupVersionKind) (object.Tree, error) {
	if to.Empty() || from.GroupVersionKind() == to {
		return runtime.DeepCopyJSON(from.Object), nil
	}
	if !legacyscheme.Scheme.Recognizes(to) {
		if custom, ok := r.write.Resource.Schema.(converter); ok {
			return custom.Converted(from.Object, to.Version)
		}
		out := from.DeepCopy()
		out.SetGroupVersionKind(to)
		return out.Object, nil
	}
	internal, err := typed.Internal(from.Object)
	if err != nil {
		return nil, err
	}
	return typed.Tree(internal, to.GroupVersion())
}

// ConvertToVersion returns an object in another version.
func (r *request) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	u, isTree := in.(*unstructured.Unstructured)
	if !ok || !isTree {
		return nil, fmt.Errorf("admission: convert %T", in)
	}
	tree, err := r.converted(u, kind)
	return &unstructured.Unstructured{Object: tree}, err
}

// ConvertFieldLabel is not used by plugins.
func (r *request) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// EquivalentResourcesFor returns a resource in all served versions, for webhooks with matchPolicy Equivalent.
func (r *request) EquivalentResourcesFor(resource schema.GroupVersionResource, _ string) []schema.GroupVersionResource {
	out := []schema.GroupVersionResource{}
	for _, d := range r.equivalents() {
		for _, version := range append([]string{d.Version}, d.Versions...) {
			out = append(out, schema.GroupVersionResource{Group: d.Group, Version: version, Resource: d.Plural})
		}
	}
	return out
}

// KindFor returns the kind of a resource in a version.
func (r *request) KindFor(resource schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	if d := r.factory.Definition(resource); d != nil {
		return d.In(resource.Version).GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// equivalents are the resource of the request, and the one whose objects it shows in another form.
func (r *request) equivalents() []*registry.Definition {
	out := []*registry.Definition{r.write.Resource}
	if gr := r.write.Resource.Alias; gr.Resource != "" {
		for _, version := range []string{r.write.Resource.Version} {
			if d := r.factory.Definition(gr.WithVersion(version)); d != nil {
				out = append(out, d)
			}
		}
	}
	return out
}
