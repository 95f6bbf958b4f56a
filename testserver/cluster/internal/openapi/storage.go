package openapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
)

// resource describes a resource or a subresource to the installer of kube-apiserver, which derives the paths of the
// documents from the interfaces that a storage implements. Its methods describe; no request reaches the others.
type resource struct {
	kind       schema.GroupVersionKind
	singular   string
	namespaced bool
	returned   bool // a deletion answers with the object
}

func (r resource) New() runtime.Object { return r.sample("") }

func (r resource) NewList() runtime.Object { return r.sample("List") }

func (r resource) sample(suffix string) runtime.Object {
	o, err := NewObject(r.kind.GroupVersion().WithKind(r.kind.Kind + suffix))
	if err != nil {
		return &metav1.Status{} // storages checks the kinds
	}
	return o
}

func (resource) Destroy() {}

func (r resource) NamespaceScoped() bool { return r.namespaced }

func (r resource) GetSingularName() string { return r.singular }

func (r resource) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return r.kind }

func (r resource) DeleteReturnsDeletedObject() bool { return r.returned }

func (resource) ConvertToTable(context.Context, runtime.Object, runtime.Object) (*metav1.Table, error) {
	return nil, errNotServed
}

var errNotServed = fmt.Errorf("testserver: a description of a resource serves no requests")

// The interfaces of verbs.
type (
	creates           struct{}
	reads             struct{}
	lists             struct{}
	updates           struct{}
	deletes           struct{}
	deletesCollection struct{}
	watches           struct{}
)

func (creates) Create(context.Context, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error) {
	return nil, errNotServed
}

func (reads) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return nil, errNotServed
}

func (lists) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return nil, errNotServed
}

func (updates) Update(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc, bool, *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return nil, false, errNotServed
}

func (deletes) Delete(context.Context, string, rest.ValidateObjectFunc, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, errNotServed
}

func (deletesCollection) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions, *internalversion.ListOptions) (runtime.Object, error) {
	return nil, errNotServed
}

func (watches) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return nil, errNotServed
}

// The combinations of verbs that built-in resources have. A part has no list, because the installer wants tables for
// lists.
type (
	whole struct {
		*resource
		creates
		reads
		lister
		updates
		deletes
		deletesCollection
		watches
	}
	wholeOneByOne struct { // namespaces
		*resource
		creates
		reads
		lister
		updates
		deletes
		watches
	}
	review struct { // requests that are not stored
		*resource
		creates
	}
	readOnly struct { // component statuses
		*resource
		reads
		lister
	}
	view struct { // subresources that show an object
		*resource
		reads
		updates
	}
	replace struct { // namespaces/finalize
		*resource
		updates
	}
	action struct { // subresources that do something, like an eviction
		*resource
		creates
	}
	logs struct {
		*resource
	}
	connection struct {
		*resource
		path    bool // the rest of the path belongs to the other side
		methods []string
	}
	lister struct{ lists }
)

func (logs) Get(context.Context, string, runtime.Object) (runtime.Object, error) {
	return nil, errNotServed
}

func (logs) NewGetOptions() (runtime.Object, bool, string) { return &corev1.PodLogOptions{}, false, "" }

func (logs) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

func (logs) ProducesObject(string) any { return "" }

func (connection) Connect(context.Context, string, runtime.Object, rest.Responder) (http.Handler, error) {
	return nil, errNotServed
}

func (c connection) NewConnectOptions() (runtime.Object, bool, string) {
	return c.New(), c.path, "path"
}

func (c connection) ConnectMethods() []string { return c.methods }

var (
	streamMethods = []string{"GET", "POST"}
	proxyMethods  = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
)

// storages returns the descriptions of the resources of one group and version.
func storages(list *metav1.APIResourceList, returned func(plural string) bool) (map[string]rest.Storage, error) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil, err
	}
	out := map[string]rest.Storage{}
	for _, r := range list.APIResources {
		d := &resource{kind: gv.WithKind(r.Kind), singular: r.SingularName, namespaced: r.Namespaced, returned: returned(r.Name)}
		if r.Version != "" {
			d.kind = schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		}
		if _, err := NewObject(d.kind); err != nil {
			return nil, fmt.Errorf("testserver: OpenAPI of %s: %w", r.Name, err)
		}
		_, part, _ := strings.Cut(r.Name, "/")
		out[r.Name] = storageOf(d, part, r.Verbs)
	}
	return out, nil
}

func storageOf(d *resource, part string, verbs []string) rest.Storage {
	has := func(verb string) bool { return slices.Contains(verbs, verb) }
	switch {
	case part == "log":
		return logs{d}
	case part == "proxy":
		return connection{resource: d, path: true, methods: proxyMethods}
	case part == "exec" || part == "attach" || part == "portforward":
		return connection{resource: d, methods: streamMethods}
	case part != "" && has("create"):
		return action{resource: d}
	case part != "" && has("get"):
		return view{resource: d}
	case part != "":
		return replace{resource: d}
	case has("deletecollection"):
		return whole{resource: d}
	case has("delete"):
		return wholeOneByOne{resource: d}
	case has("list"):
		return readOnly{resource: d}
	}
	return review{resource: d}
}
