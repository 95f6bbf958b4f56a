package api

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resource says which collection of a server objects belong to. A Go type does not tell its kind (a projection of a
// Pod is not called Pod), so a Resource travels beside the type: into URLs, logs, metrics, NotFound errors and owner
// look-ups. It is comparable, and holds what client-go spreads over GroupVersionResource, GroupVersionKind and
// meta.RESTScope.
type Resource struct {
	Group      string // "" for the core group
	Version    string // "v1"
	Kind       string // "Pod"
	Plural     string // "pods", as it stands in URLs
	Namespaced bool
}

// GroupVersion returns the group and version, whose String is an object's apiVersion.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupVersionKind returns the kind that objects of the resource carry.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// GroupVersionResource returns the plural name with its group and version.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// GroupResource returns the plural name with its group, which is how apimachinery's errors name a resource.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// String returns "pods" or "deployments.apps", which is how people name a resource.
func (r Resource) String() string { return r.GroupResource().String() }
