package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Subresource is a part of an object, or an action on it, with its own path.
type Subresource struct {
	Name                 string
	Kind, Group, Version string // empty means those of the object
	Verbs                metav1.Verbs
	Columns              Columns // of a kind of its own; nil: it has no table
}

// OfObject reports whether the subresource has the kind of its object.
func (s Subresource) OfObject() bool { return s.Kind == "" }

var (
	statusSubresource = Subresource{Name: "status", Verbs: metav1.Verbs{"get", "patch", "update"}}
	scaleSubresource  = Subresource{
		Name: "scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Verbs: metav1.Verbs{"get", "patch", "update"},
	}
	evictionSubresource = Subresource{
		Name: "eviction", Kind: "Eviction", Group: "policy", Version: "v1", Verbs: metav1.Verbs{"create"},
	}
	bindingSubresource  = Subresource{Name: "binding", Kind: "Binding", Verbs: metav1.Verbs{"create"}}
	logSubresource      = Subresource{Name: "log", Verbs: metav1.Verbs{"get"}}
	finalizeSubresource = Subresource{Name: "finalize", Verbs: metav1.Verbs{"update"}}
	tokenSubresource    = Subresource{
		Name: "token", Kind: "TokenRequest", Group: "authentication.k8s.io", Version: "v1", Verbs: metav1.Verbs{"create"},
	}
)

// Subresources returns the subresources of a resource.
func (d *Definition) Subresources() []Subresource {
	switch {
	case !d.Custom:
		return d.Subs
	case d.NoStatus:
		return nil
	}
	return []Subresource{statusSubresource}
}

// builtinSubresources returns the subresources of a resource of Builtins.
func (d *Definition) builtinSubresources() []Subresource {
	var out []Subresource
	if !d.NoStatus {
		out = append(out, statusSubresource)
	}
	if d.scale {
		out = append(out, scaleSubresource)
	}
	switch d.GroupResource() {
	case Namespaces:
		out = append(out, finalizeSubresource)
	case schema.GroupResource{Resource: "pods"}:
		out = append(out, evictionSubresource, bindingSubresource, logSubresource)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		out = append(out, tokenSubresource)
	}
	return out
}

// SubresourceKind returns the kind and the apiVersion of a subresource that has its own, in a served version.
func (d *Definition) SubresourceKind(served, name string) (kind, apiVersion string) {
	if name == "" {
		return "", ""
	}
	for _, s := range d.SubresourcesIn(served) {
		if s.Name == name && s.Kind != "" {
			return s.Kind, schema.GroupVersion{Group: s.Group, Version: s.Version}.String()
		}
	}
	return "", ""
}
