package discovery

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// APIResource is what a server says of one of its resources in one version. Its slices belong to the Mapper and must
// not be changed. It corresponds to metav1.APIResource, with its group, version and subresources in place.
type APIResource struct {
	api.Resource

	Singular     string   // "pod"; "" if the server gives none
	ShortNames   []string // "po"
	Categories   []string // "all"
	Verbs        []string // "get", "list", "watch", …
	Subresources []Subresource

	// Preferred tells that no version with this resource is preferred to this one, in its group.
	Preferred bool
}

// Subresource is a part of an object, or an action on it, with a path of its own.
type Subresource struct {
	Name                 string // "scale"
	Group, Version, Kind string // of what is sent there; Kind is "" if it is no object
	Verbs                []string
}

// Can tells whether the server offers all the verbs for the resource. Whether the user may use them is another
// question.
func (r APIResource) Can(verbs ...string) bool {
	for _, v := range verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	return true
}
