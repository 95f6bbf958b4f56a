package api

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resource identifies a collection of objects on a server. A Go type does not tell its kind, because a projection of a
// Pod is not called Pod. So a Resource accompanies the type into URLs, logs, metrics, NotFound errors and owner
// look-ups. It is comparable. client-go spreads the same data over GroupVersionResource, GroupVersionKind and
// meta.RESTScope.
type Resource struct {
	Group      string // "" for the core group
	Version    string // "v1"
	Kind       string // "Pod"
	Plural     string // "pods", as in URLs
	Namespaced bool   // whether objects have a namespace; a reflector refuses objects that contradict it
}

// GroupVersion returns the group and version. Its String is the apiVersion of an object.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupVersionKind returns the kind of the resource's objects.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// GroupVersionResource returns the plural name with its group and version.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// GroupResource returns the plural name with its group. apimachinery's errors name a resource like this.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// String returns "pods" or "deployments.apps".
func (r Resource) String() string { return r.GroupResource().String() }
