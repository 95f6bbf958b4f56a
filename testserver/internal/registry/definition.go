package registry

import (
	"fmt"
	"slices"
	"strings"

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

	FromCRD        bool // from a CustomResourceDefinition
	Custom         bool // items of lists contain kind and apiVersion; an update needs a version
	Generation     bool // metadata.generation counts changes outside of metadata and status
	Annotated      bool // generation also counts changes of annotations (deployments)
	Unconditional  bool // an update needs no version
	CreateOnUpdate bool // an update of a missing object creates it
	ReturnsDeleted bool // the answer to a deletion is the object instead of a Status
	Graceful       bool // a deletion waits for the kubelet (pods)
	scale          bool // has a scale subresource
	Fields         func(object.Tree) []FieldValue
	Prepare        func(object.Tree) // sets defaults in a new object
	ResetStatus    func() any        // returns the status of a new object; nil means no status
	StatusKeeps    []string          // metadata that an update of the status does not change; custom resources keep all
}

// SingularName returns the singular name.
func (d *Definition) SingularName() string {
	if d.Singular != "" {
		return d.Singular
	}
	return strings.ToLower(d.Kind)
}

// Serves reports whether the resource is served in a version.
func (d *Definition) Serves(version string) bool {
	return version == d.Version || slices.Contains(d.Versions, version)
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

// IsCRD reports whether the resource is that of CustomResourceDefinitions.
func (d *Definition) IsCRD() bool { return d.GroupResource() == CRDs }
