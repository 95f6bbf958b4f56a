package registry

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// Settings are the properties of a resource that its author chooses.
type Settings struct {
	api.Resource

	Versions         []string // served besides Resource.Version
	Singular         string   // empty means the kind in lower case
	ShortNames       []string
	Categories       []string
	NoStatus         bool     // has no status subresource
	SelectableFields []string // paths that field selectors may use
}

// Definition is a resource that the server serves: the settings, and the properties in which built-in resources differ
// from custom ones.
type Definition struct {
	Settings

	ListKind       string // empty means the kind with "List"
	FromCRD        bool   // from a CustomResourceDefinition
	Custom         bool   // items of lists contain kind and apiVersion; an update needs a version
	Generation     bool   // metadata.generation counts changes outside of metadata and status
	Annotated      bool   // generation also counts changes of annotations (deployments)
	Unconditional  bool   // an update needs no version
	CreateOnUpdate bool   // an update of a missing object creates it
	ReturnsDeleted bool   // the answer to a deletion is the object instead of a Status
	Graceful       bool   // a deletion waits for the kubelet (pods)
	Untyped        bool   // contents have no types; such a server has no nodes
	CallsWebhook   bool   // converts with a webhook
	scale          bool   // has a scale subresource
	Fields         func(object.Tree) []FieldValue
	Default        func(object.Tree) // sets what the decoder of kube-apiserver sets, before the field managers
	Prepare        func(object.Tree) // sets defaults in a new object, after them
	ResetStatus    func() any        // returns the status of a new object; nil means no status
	StatusKeeps    []string          // metadata that an update of the status does not change; custom resources keep all

	StoredVersion string        // of stored objects, if it is not Version
	Unserved      []string      // further versions that stored objects of a custom resource may have
	Verbs         metav1.Verbs  // nil means all
	Subs          []Subresource // of a built-in resource
	// Alias is the resource whose objects this one shows in another form (the two APIs of Events). It is defined
	// before this one, and both have the same stored form. The zero value means objects of its own.
	Alias schema.GroupResource
	// Field translates a field of a selector into a name of Fields. The error is part of the answer. nil means that
	// selectors may use the names of Fields.
	Field func(name, value string) (storedName, storedValue string, err error)

	// Warnings are those of every answer in a served version, because the version is deprecated. Custom resources have
	// theirs in PerVersion.
	Warnings map[string][]string
	// Missing is the resource in the error about an object that does not exist; empty: Plural.
	Missing   string
	GoPackage string // of the type in Kubernetes that errors name, such as core; empty: the type of custom resources

	PerVersion     map[string]Served // what differs between served versions; nil: nothing
	Schema         Schema            // of a served resource, never nil
	Managers       Managers          // nil: the answer to server-side apply is 415
	Columns        Columns           // nil: the columns Name and Age
	StrategicMerge MergePatch        // nil: the answer to a strategic merge patch is 415
	Scaling        Scaling           // nil: a Scale has no managers

	// Compute returns the objects of a resource that is not stored, for each read. It reads other resources. Nil: the
	// objects are stored.
	Compute func(Reader) []object.Tree
	// Act answers creations of a resource whose objects are not stored. Actions do the same for subresources, by name.
	Act     Action
	Actions map[string]Action
	// ActionManagers are the managers of objects that are created in subresources, by the subresource.
	ActionManagers map[string]Managers
}

// Reader yields the stored objects of a resource.
type Reader func(schema.GroupResource) iter.Seq[object.Tree]

// SingularName returns the singular name.
func (d *Definition) SingularName() string {
	if d.Singular != "" {
		return d.Singular
	}
	return strings.ToLower(d.Kind)
}

// Stored returns the version in which objects are stored.
func (d *Definition) Stored() string { return cmp.Or(d.StoredVersion, d.Version) }

// WarningsIn returns the warnings of every answer in a served version.
func (d *Definition) WarningsIn(served string) []string {
	if v, ok := d.PerVersion[served]; ok {
		return v.Warnings
	}
	return d.Warnings[served]
}

// NotFound returns the error about an object that does not exist.
func (d *Definition) NotFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: d.Group, Resource: cmp.Or(d.Missing, d.Plural)}, name)
}

// TypeName returns the Go type of a kind of the resource in Kubernetes.
func (d *Definition) TypeName(kind string) string {
	switch {
	case d.GoPackage != "":
		return "*" + d.GoPackage + "." + kind
	case kind == d.ListKindName():
		return "*unstructured.UnstructuredList"
	}
	return "*unstructured.Unstructured"
}

// Serves reports whether the resource is served in a version.
func (d *Definition) Serves(version string) bool {
	return version == d.Version || slices.Contains(d.Versions, version)
}

// Stores reports whether stored objects may have a version. Only custom resources change it.
func (d *Definition) Stores(version string) bool {
	if d.Custom {
		return d.Serves(version) || slices.Contains(d.Unserved, version)
	}
	return version == d.Stored()
}

// Fresh returns the resource for another store, in which its objects hold nothing; see Claimer.
func (d *Definition) Fresh() *Definition {
	claimer, ok := d.Schema.(Claimer)
	if !ok {
		return d
	}
	out := *d
	out.Schema = claimer.Fresh()
	return &out
}

// Describes returns the resource in the version of an object. ok is false if the object has another kind, or a version
// in which the resource is not served.
func (d *Definition) Describes(tree object.Tree) (r api.Resource, ok bool) {
	gv, err := schema.ParseGroupVersion(object.StringAt(tree, "apiVersion"))
	ok = err == nil && gv.Group == d.Group && object.StringAt(tree, "kind") == d.Kind && d.Serves(gv.Version)
	return d.In(gv.Version), ok
}

// served returns the versions in which the resource is served.
func (d *Definition) served() []string { return append([]string{d.Version}, d.Versions...) }

// In returns the resource in the given API version.
func (d *Definition) In(version string) api.Resource {
	r := d.Resource
	r.Version = version
	return r
}

// Selectable reports whether field selectors may use the field.
func (d *Definition) Selectable(name string) bool {
	switch name {
	case "metadata.name", "metadata.namespace":
		return true
	}
	for _, f := range d.fieldNames() {
		if f == name {
			return true
		}
	}
	return false
}

func (d *Definition) fieldNames() []string {
	if d.Fields == nil {
		return nil
	}
	var names []string
	for _, f := range d.Fields(object.Tree{}) {
		names = append(names, f.Name)
	}
	return names
}

// Custom checks settings and returns a custom resource with them.
func Custom(s Settings) (*Definition, error) {
	if s.Version == "" || s.Kind == "" || s.Plural == "" {
		return nil, fmt.Errorf("testserver: define %q: a resource needs a version, a kind and a plural name", s.Plural)
	}
	out := &Definition{Settings: s, Custom: true, Generation: true}
	if len(s.SelectableFields) > 0 {
		out.Fields = selectFields(s.SelectableFields...)
	}
	return out, nil
}

// selectFields returns a function that reads the given paths. A missing value is empty, or the text after "=" in the
// path.
func selectFields(paths ...string) func(object.Tree) []FieldValue {
	missing := make([]FieldValue, len(paths))
	split := make([][]string, len(paths))
	for i, p := range paths {
		missing[i].Name, missing[i].Value, _ = strings.Cut(strings.TrimPrefix(p, "."), "=")
		split[i] = strings.Split(missing[i].Name, ".")
	}
	return func(tree object.Tree) []FieldValue {
		out := slices.Clone(missing)
		for i, parts := range split {
			if value := object.TextAt(tree, parts...); value != "" {
				out[i].Value = value
			}
		}
		return out
	}
}

// FieldValue is one selectable field.
type FieldValue struct{ Name, Value string }

// Resources that have a meaning for other resources.
var (
	Namespaces = schema.GroupResource{Resource: "namespaces"}
	CRDs       = schema.GroupResource{Group: crdGroup, Resource: "customresourcedefinitions"}
)

const crdGroup = "apiextensions.k8s.io"

// IsNamespace reports whether the resource is that of namespaces.
func (d *Definition) IsNamespace() bool { return d.GroupResource() == Namespaces }

// IsBinding reports whether the resource is that of bindings, which only typed servers have.
func (d *Definition) IsBinding() bool {
	return d.GroupResource() == schema.GroupResource{Resource: "bindings"}
}

// IsCRD reports whether the resource is that of CustomResourceDefinitions.
func (d *Definition) IsCRD() bool { return d.GroupResource() == CRDs }
