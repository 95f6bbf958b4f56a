package discovery

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// APIResource is a resource of a server in one version. The Mapper owns its slices; do not change them. It corresponds
// to metav1.APIResource, and also has group, version and subresources.
type APIResource struct {
	api.Resource

	Singular     string   // "pod"; empty if the server sends none
	ShortNames   []string // "po"
	Categories   []string // "all"
	Verbs        []string // "get", "list", "watch", …
	Subresources []Subresource

	// Preferred reports that no version of the group that has this resource is preferred to this one.
	Preferred bool
}

// Subresource is a part of an object, or an action on it, with its own path.
type Subresource struct {
	Name                 string // "scale"
	Group, Version, Kind string // type of the objects that are sent there; Kind may be empty
	Verbs                []string
}

// Can reports whether the server supports all these verbs for the resource. It does not check the permissions of the
// user.
func (r APIResource) Can(verbs ...string) bool {
	for _, v := range verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	return true
}
