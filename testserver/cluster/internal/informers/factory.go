package informers

import (
	"cmp"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Factory has an informer for each resource of a server.
type Factory struct {
	informers.SharedInformerFactory // nil: the methods that nothing calls

	mu    sync.Mutex // guards the fields below
	store *store.Store
	known map[schema.GroupVersionKind]*informer
}

// New returns a factory without objects.
func New() *Factory { return &Factory{known: map[schema.GroupVersionKind]*informer{}} }

// Connect gives the factory the objects of a server. It is called before the first request.
func (f *Factory) Connect(s *store.Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store = s
}

// source returns the store, or nil before Connect.
func (f *Factory) source() *store.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store
}

// Start does nothing: there is nothing to start.
func (f *Factory) Start(<-chan struct{}) {}

// InformerName returns nil: these informers have no metrics.
func (f *Factory) InformerName() *cache.InformerName { return nil }

// InformerFor returns the informer of a Go type of client-go. It never calls the function.
func (f *Factory) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		panic(fmt.Sprintf("informers: %v", err))
	}
	shape := reflect.TypeOf(obj).Elem()
	return f.informer(kinds[0], func() runtime.Object { return reflect.New(shape).Interface().(runtime.Object) })
}

// ForResource returns the informer of a resource that the server serves. Its objects are unstructured if client-go has
// no type for them.
func (f *Factory) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	if d := f.Definition(r); d != nil {
		return f.generic(d, cmp.Or(r.Version, d.Version)), nil
	}
	return nil, fmt.Errorf("informers: the server does not have the resource %s", r)
}

// ForKind returns the informer of a kind, as ForResource does, and whether its objects have namespaces.
func (f *Factory) ForKind(kind schema.GroupVersionKind) (i informers.GenericInformer, namespaced bool, err error) {
	d := f.Kind(kind)
	if d == nil {
		return nil, false, fmt.Errorf("informers: the server does not have the kind %s", kind)
	}
	return f.generic(d, kind.Version), d.Namespaced, nil
}

func (f *Factory) generic(d *registry.Definition, version string) informers.GenericInformer {
	kind := d.In(version).GroupVersionKind()
	create := func() runtime.Object {
		o, _ := scheme.Scheme.New(kind) // recognized
		return o
	}
	if !scheme.Scheme.Recognizes(kind) {
		create = nil
	}
	return genericInformer{f.informer(kind, create), d.GroupResource()}
}

// Definition returns the present definition of a resource, or nil if the server does not have it. An empty version
// means any version.
func (f *Factory) Definition(r schema.GroupVersionResource) *registry.Definition {
	s := f.source()
	if s == nil {
		return nil
	}
	for _, d := range s.Definitions() {
		if d.GroupResource() == r.GroupResource() && (r.Version == "" || d.Serves(r.Version)) {
			return d
		}
	}
	return nil
}

// informer returns the informer of a kind. Without create, its objects are unstructured.
func (f *Factory) informer(kind schema.GroupVersionKind, create func() runtime.Object) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.known[kind]
	if i == nil {
		i = &informer{objects: &objects{factory: f, kind: kind, create: create}}
		f.known[kind] = i
	}
	return i
}

// Kind returns the present definition of a kind, or nil if the server does not serve it.
func (f *Factory) Kind(kind schema.GroupVersionKind) *registry.Definition {
	s := f.source()
	if s == nil {
		return nil
	}
	for _, d := range s.Definitions() {
		if d.Group == kind.Group && d.Kind == kind.Kind && d.Serves(kind.Version) {
			return d
		}
	}
	return nil
}

// NextVersion returns a channel that closes when the server has stored something.
func (f *Factory) NextVersion() <-chan struct{} { return f.source().NextVersion() }

// Empty reports whether a resource has no objects. Admission asks for each write, so it takes less time than a lister.
func (f *Factory) Empty(r schema.GroupVersionResource) bool {
	s := f.source()
	if s == nil {
		return true
	}
	c, _, ok := s.Find(r.Group, r.Version, r.Resource)
	return !ok || s.View(c).Len() == 0
}

// UID returns the UID of an object, or "" if it does not exist.
func (f *Factory) UID(r schema.GroupVersionResource, key api.Key) string {
	s := f.source()
	c, _, ok := s.Find(r.Group, r.Version, r.Resource)
	if !ok {
		return ""
	}
	if have := s.View(c).Get(key); have != nil {
		return string(have.UID())
	}
	return ""
}

// Write changes a stored object in its storage version. It does nothing if the object does not exist. Neither admission
// nor validation see the change.
func (f *Factory) Write(r schema.GroupVersionResource, key api.Key, change func(object.Tree)) error {
	s := f.source()
	c, _, ok := s.Find(r.Group, r.Version, r.Resource)
	if !ok {
		return nil
	}
	s.Lock()
	defer s.Unlock()
	before := c.Get(key)
	if before == nil {
		return nil
	}
	tree := before.Tree()
	change(tree)
	_, err := s.Put(c, before, tree)
	return err
}

// Refresh calls the handlers of all informers for what has changed since the last call.
func (f *Factory) Refresh() {
	f.mu.Lock()
	var room [64]*informer // on the stack: there are fewer, and every write calls this
	all := room[:0]
	for _, i := range f.known {
		all = append(all, i)
	}
	f.mu.Unlock()
	for _, i := range all {
		i.refresh()
	}
}

// The groups that the libraries use.

func (f *Factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}
func (f *Factory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *Factory) Networking() networking.Interface { return networking.New(f, "", nil) }
func (f *Factory) Node() node.Interface             { return node.New(f, "", nil) }
func (f *Factory) Rbac() rbac.Interface             { return rbac.New(f, "", nil) }
func (f *Factory) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *Factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *Factory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// genericInformer is an informer whose lister has no Go type.
type genericInformer struct {
	cache.SharedIndexInformer
	resource schema.GroupResource
}

// Informer returns the informer.
func (g genericInformer) Informer() cache.SharedIndexInformer { return g.SharedIndexInformer }

// Lister returns the lister.
func (g genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.GetIndexer(), g.resource)
}
