package cache

import (
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
)

// Labeled is an object with labels. A Lister selects objects by them.
type Labeled interface {
	api.Object
	GetLabels() map[string]string
}

// ListerOptions configures a Lister.
type ListerOptions[T api.Object] struct {
	// ByNamespace is an index over the Indexer that the Lister reads, made from the IndexFunc ByNamespace. If it is
	// nil, or if the Lister reads something else, the Lister finds the objects of a namespace by looking at all
	// objects.
	ByNamespace *Index[T, string]
}

// Lister finds objects by name, by namespace and by label selector. The objects that it returns are shared and must not
// be changed. Every call sees one state of the cache; to ask several questions about the same state, make a Lister of a
// Snapshot. It corresponds to the generated listers of client-go and to its cache.GenericLister.
type Lister[T Labeled] struct {
	reader      Reader[T]
	resource    api.Resource
	byNamespace *Index[T, string]
}

// NewLister returns a Lister over a reader: an Indexer, a Snapshot or the cache of an informer. NotFound errors contain
// the resource.
func NewLister[T Labeled](r Reader[T], resource api.Resource, o ListerOptions[T]) *Lister[T] {
	return &Lister[T]{reader: r, resource: resource, byNamespace: o.ByNamespace}
}

// List returns the objects whose labels the selector matches; a nil selector matches everything.
func (l *Lister[T]) List(selector labels.Selector) []T {
	if matchesAll(selector) {
		return l.reader.List()
	}
	return selected(l.reader.All(), selector)
}

// Get returns the object with the given key. If it is missing, the error is apimachinery's NotFound.
func (l *Lister[T]) Get(key api.Key) (T, error) {
	object, ok := l.reader.Get(key)
	if !ok {
		return object, apierrors.NewNotFound(l.resource.GroupResource(), key.Name)
	}
	return object, nil
}

// Namespace returns a Lister of one namespace. The namespace "" holds the cluster-scoped objects, not all objects.
func (l *Lister[T]) Namespace(namespace string) *NamespaceLister[T] {
	return &NamespaceLister[T]{lister: l, namespace: namespace}
}

// NamespaceLister is a Lister that is limited to one namespace. It corresponds to the generated namespace listers of
// client-go and to its cache.GenericNamespaceLister.
type NamespaceLister[T Labeled] struct {
	lister    *Lister[T]
	namespace string
}

// List returns the objects of the namespace whose labels the selector matches; a nil selector matches everything.
func (n *NamespaceLister[T]) List(selector labels.Selector) []T {
	return selected(n.all(), selector)
}

// Get returns the object with the given name. If it is missing, the error is apimachinery's NotFound.
func (n *NamespaceLister[T]) Get(name string) (T, error) {
	return n.lister.Get(api.Key{Namespace: n.namespace, Name: name})
}

func (n *NamespaceLister[T]) all() iter.Seq2[api.Key, T] {
	l := n.lister
	if l.byNamespace != nil {
		switch r := l.reader.(type) {
		case *Snapshot[T]:
			return l.byNamespace.In(r, n.namespace)
		case *Indexer[T]:
			return l.byNamespace.In(r.Snapshot(), n.namespace)
		}
	}
	return func(yield func(api.Key, T) bool) {
		for key, object := range l.reader.All() {
			if key.Namespace == n.namespace && !yield(key, object) {
				return
			}
		}
	}
}

func matchesAll(selector labels.Selector) bool { return selector == nil || selector.Empty() }

func selected[T Labeled](all iter.Seq2[api.Key, T], selector labels.Selector) []T {
	every, list := matchesAll(selector), []T{}
	for _, object := range all {
		if every || selector.Matches(labels.Set(object.GetLabels())) {
			list = append(list, object)
		}
	}
	return list
}
