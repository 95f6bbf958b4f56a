package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Subresource is a part of an object, or an action on it, with its own path.
type Subresource struct {
	Name                 string
	kind, group, version string // empty means those of the object
	verbs                metav1.Verbs
}

var (
	statusSubresource = Subresource{Name: "status", verbs: metav1.Verbs{"get", "patch", "update"}}
	scaleSubresource  = Subresource{
		Name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: metav1.Verbs{"get", "patch", "update"},
	}
	evictionSubresource = Subresource{
		Name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: metav1.Verbs{"create"},
	}
	bindingSubresource = Subresource{Name: "binding", kind: "Binding", verbs: metav1.Verbs{"create"}}
	logSubresource     = Subresource{Name: "log", verbs: metav1.Verbs{"get"}}
	tokenSubresource   = Subresource{
		Name: "token", kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: metav1.Verbs{"create"},
	}
)

// Subresources returns the subresources of a resource.
func (d *Definition) Subresources() []Subresource {
	var out []Subresource
	if !d.NoStatus {
		out = append(out, statusSubresource)
	}
	if d.scale {
		out = append(out, scaleSubresource)
	}
	switch d.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		out = append(out, evictionSubresource, bindingSubresource, logSubresource)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		out = append(out, tokenSubresource)
	}
	return out
}
