package builtin

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/cluster/internal/columns"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// group is an API group, with its resources in the order of discovery.
type group struct {
	name      string
	versions  []string // the first one is preferred and stored
	resources []row
}

// row is one resource in the table of built-in resources. A resource without a strategy has no stored objects.
type row struct {
	kind, plural string
	strategy     strategy
	status       rest.RESTUpdateStrategy
	parts        []part       // further subresources that write to the object
	actions      []action     // subresources of other kinds
	fields       []selectable // besides the name and the namespace
	short        string
	category     string
	returned     bool // the answer to a deletion is the object
	graceful     bool // a deletion waits for the kubelet
	alias        schema.GroupResource
	raw          bool // contains JSON of any form
	converted    bool // the conversion to the internal version and back adds fields, which belong to the writer
	claims       func() beginner
	cluster      bool         // has no namespace; the strategy knows it if there is one
	verbs        metav1.Verbs // of a resource without a strategy
	missing      string       // the name in the error about a missing object, if it is not the plural
}

// strategy has the rules of Kubernetes for the writes to a resource.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// part is a subresource that is a view of the object, with a strategy of its own.
type part struct {
	name     string
	strategy rest.RESTUpdateStrategy
	verbs    metav1.Verbs
}

// action is a subresource of another kind. An empty kind or version is that of the resource.
type action struct {
	name, kind, group, version string
	verbs                      metav1.Verbs
	columns                    registry.Columns
}

var (
	viewVerbs   = metav1.Verbs{"get", "patch", "update"}
	createVerb  = metav1.Verbs{"create"}
	streamVerbs = metav1.Verbs{"create", "get"}
	proxyVerbs  = metav1.Verbs{"create", "delete", "get", "patch", "update"}

	scale = action{name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: viewVerbs, columns: columns.Scale()}
)

// Resources returns new definitions of the built-in resources, in the order of discovery.
func Resources() []*registry.Definition {
	var out []*registry.Definition
	for _, g := range groups() {
		if g.name == "scheduling.k8s.io" { // apiextensions.k8s.io comes before it
			out = append(out, customResourceDefinitions()...)
		}
		for i := range g.resources {
			out = append(out, g.definition(&g.resources[i]))
		}
	}
	return out
}

// customResourceDefinitions returns the definition of the untyped server. Package definitions has the typed one.
func customResourceDefinitions() []*registry.Definition {
	return slices.DeleteFunc(registry.Builtins(), func(d *registry.Definition) bool { return !d.IsCRD() })
}

func (g *group) definition(r *row) *registry.Definition {
	d := &registry.Definition{}
	d.Group, d.Version, d.Versions, d.Kind, d.Plural = g.name, g.versions[0], g.versions[1:], r.kind, r.plural
	d.Namespaced = !r.cluster
	d.ShortNames, d.Categories = list(r.short), list(r.category)
	d.NoStatus = r.status == nil
	d.ReturnsDeleted, d.Graceful, d.Alias, d.Verbs = r.returned, r.graceful, r.alias, r.verbs
	d.Subs = subresources(r)
	d.Fields = fieldsOf(r.fields)
	d.Schema = newRules(d, r)
	d.Columns = columns.For(d)
	d.Field = fieldLabels(d)
	d.Missing = r.missing
	describe(d)
	if r.strategy == nil {
		return d
	}
	ctx := plainContext(d)
	d.Namespaced = r.strategy.NamespaceScoped()
	d.Unconditional = r.strategy.AllowUnconditionalUpdate(ctx)
	d.CreateOnUpdate = r.strategy.AllowCreateOnUpdate(ctx)
	return d
}

// describe sets what the Go types of a resource say: their package, and the versions that are deprecated.
func describe(d *registry.Definition) {
	if obj, err := legacyscheme.Scheme.New(internal(d.Group).WithKind(d.Kind)); err == nil {
		d.GoPackage, _, _ = strings.Cut(reflect.TypeOf(obj).Elem().String(), ".")
	}
	for _, served := range append([]string{d.Version}, d.Versions...) {
		kind := d.In(served).GroupVersionKind()
		obj, err := legacyscheme.Scheme.New(kind)
		if err != nil {
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(kind)
		if text := deprecation.WarningMessage(obj); text != "" {
			if d.Warnings == nil {
				d.Warnings = map[string][]string{}
			}
			d.Warnings[served] = []string{text}
		}
	}
}

func list(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func subresources(r *row) []registry.Subresource {
	var out []registry.Subresource
	if r.status != nil {
		out = append(out, registry.Subresource{Name: "status", Verbs: viewVerbs})
	}
	for _, p := range r.parts {
		out = append(out, registry.Subresource{Name: p.name, Verbs: p.verbs})
	}
	for _, a := range r.actions {
		out = append(out, registry.Subresource{
			Name: a.name, Kind: a.kind, Group: a.group, Version: a.version, Verbs: a.verbs, Columns: a.columns,
		})
	}
	return out
}
