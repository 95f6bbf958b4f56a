package testserver

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// subresource is a part of an object, or an action on it, with a path of its own.
type subresource struct {
	name                 string
	kind, group, version string // empty: those of the object
	verbs                metav1.Verbs
}

func (d *definition) subresources() []subresource {
	var out []subresource
	if !d.NoStatus {
		out = append(out, subresource{name: "status", verbs: metav1.Verbs{"get", "patch", "update"}})
	}
	return out
}

func (x *call) hasSubresource() bool {
	for _, sub := range x.def.subresources() {
		if sub.name == x.request.Subresource {
			return true
		}
	}
	return false
}

// subresource returns the handler of a request for a subresource, or nil.
func (x *call) subresource() func() error {
	if !x.hasSubresource() {
		return nil
	}
	if x.request.Subresource == "status" {
		switch x.http.Method {
		case http.MethodGet:
			return x.get
		case http.MethodPut:
			return x.update
		case http.MethodPatch:
			return x.patch
		}
	}
	return nil
}
