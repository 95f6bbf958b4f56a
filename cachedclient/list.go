package cachedclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// maxListAge is the age at which the pages of a list expire. It is the age at which an API server's continue token
// expires if etcd is compacted every five minutes, the default.
const maxListAge = 5 * time.Minute

// ListOptions select objects. The zero value selects all objects, as copies on one page.
type ListOptions struct {
	// Namespaces selects objects in these namespaces. Empty means all cached namespaces. The list looks at every object
	// of the cache. To list one of many namespaces, add the index cache.ByNamespace to the informer and select with By.
	Namespaces []string
	// Labels selects objects by their labels. Nil selects all. T must have labels.
	Labels labels.Selector
	// Limit is the number of items on a page. List.Next returns the next page. Zero means no limit.
	Limit int
	// Shared returns the objects of the cache instead of copies. They must not be changed.
	// It corresponds to UnsafeDisableDeepCopy of controller-runtime.
	Shared bool
}

// Selection selects objects by a value of an index. Make one with By.
type Selection[T api.Object] struct {
	lookUp  func(*cache.Snapshot[T]) iter.Seq2[api.Key, T]
	matches func(T) bool
}

// By selects the objects that have a value in an index of the informer's cache:
//
//	byNode := informer.AddIndex(pods, func(p *Pod) []string { return []string{p.Spec.NodeName} })
//	list, err := pods.List(ctx, cachedclient.ListOptions{}, cachedclient.By(byNode, "n1"))
//
// It corresponds to MatchingFields of controller-runtime; the index needs no name.
func By[T api.Object, V comparable](index *cache.Index[T, V], value V) Selection[T] {
	return Selection[T]{
		lookUp:  func(s *cache.Snapshot[T]) iter.Seq2[api.Key, T] { return index.In(s, value) },
		matches: func(object T) bool { return index.Has(object, value) },
	}
}

// List is a page of the objects that a cache had at one moment.
type List[T api.Object] struct {
	// Items are in the order of their namespaces, and of their names within a namespace.
	Items []T
	// ResourceVersion is the version of the cache, or of the server's list. With an overlay, some items may be newer.
	ResourceVersion string
	// Remaining is the number of items on the next pages.
	Remaining int

	rest []T // of the next pages, shared
	info listInfo
}

// listInfo is what all pages of a list have in common.
type listInfo struct {
	resource api.Resource
	limit    int
	shared   bool
	made     time.Time
}

// Next returns the next page, with objects from the moment of the first page. It has no items after the last page. If
// the list is older than five minutes, the error is an *ExpiredError, so that the caller does not act on a state that
// is long past. The objects of the next pages stay in memory as long as the List does.
func (l List[T]) Next() (List[T], error) {
	if time.Since(l.info.made) > maxListAge {
		return List[T]{}, &ExpiredError{Resource: l.info.resource, ResourceVersion: l.ResourceVersion, Age: maxListAge}
	}
	return firstPage(l.rest, l.ResourceVersion, l.info), nil
}

// firstPage returns the first page of the given objects.
func firstPage[T api.Object](objects []T, version string, info listInfo) List[T] {
	n := len(objects)
	if info.limit > 0 {
		n = min(n, info.limit)
	}
	l := List[T]{Items: make([]T, n), ResourceVersion: version, Remaining: len(objects) - n, rest: objects[n:], info: info}
	for i, object := range objects[:n] {
		if !info.shared {
			object = api.Clone(object)
		}
		l.Items[i] = object
	}
	return l
}

// List returns copies of the objects that match the options and all selections, in the order of their keys. It looks
// the first selection up in its index, and checks the others for each object that it finds. List blocks as Get does. To
// ask several questions about one state, use the informer's Snapshot instead. With an informer of scale/referenced,
// List is an error, because it would return a part as the whole. It corresponds to client.Reader.List of
// controller-runtime, which has no order, no version and one page.
func (p *Partial[T]) List(ctx context.Context, o ListOptions, where ...Selection[T]) (List[T], error) {
	o.Namespaces = slices.Sorted(slices.Values(o.Namespaces)) // for the binary search in matches
	v, err := p.source.currentOrStarted()
	switch {
	case err == nil && v == nil && p.options.ReadLive:
		return p.listLive(ctx, o, where)
	case err == nil && v == nil:
		err = &NotCachedError{Resource: p.Resource()}
	case err == nil && v.part != nil:
		err = errPart
	case err == nil:
		err = v.waitListable(ctx, o)
	}
	if err != nil {
		return List[T]{}, fmt.Errorf("list %s: %w", p.Resource(), err)
	}
	snapshot, overrides := v.snapshot()
	selected := selectFrom(snapshot, overrides, o, where)
	// Without a limit, no other page shares the objects.
	return p.newList(selected, snapshot.ResourceVersion(), o.Limit, o.Shared || o.Limit == 0 && v.copies()), nil
}

// errPart is the error of a list from a cache that has only the objects to which others refer.
var errPart = errors.New("cachedclient: the cache has only the objects that others refer to, and a part of a list looks like the whole; " +
	"read one object, or the informer's Snapshot")

// waitListable blocks until the cache has its first list. It fails if the cache cannot evaluate the options.
func (v *cacheView[T]) waitListable(ctx context.Context, o ListOptions) error {
	var none T
	if _, ok := any(none).(labeled); !ok && o.Labels != nil && !o.Labels.Empty() {
		return fmt.Errorf("cachedclient: ListOptions.Labels needs objects with labels, and a %T has none", none)
	}
	for _, namespace := range o.Namespaces {
		if !v.includesNamespace(namespace) {
			return &NotCachedError{Resource: v.informer.Resource(), Namespace: namespace}
		}
	}
	return v.waitReadable(ctx, "")
}

// selectFrom returns the matching objects of a cache, with the overrides of an overlay.
func selectFrom[T api.Object](s *cache.Snapshot[T], overrides map[api.Key]override[T], o ListOptions, where []Selection[T]) []T {
	candidates, others, selected := s.All(), where, []T{}
	if len(where) > 0 {
		candidates, others = where[0].lookUp(s), where[1:]
	}
	for key, object := range candidates {
		if _, overridden := overrides[key]; !overridden && matches(o, others, object) {
			selected = append(selected, object)
		}
	}
	for _, instead := range overrides {
		if instead.found && matches(o, where, instead.object) {
			selected = append(selected, instead.object)
		}
	}
	return selected
}

// newList sorts the objects and returns the first page.
func (p *Partial[T]) newList(objects []T, version string, limit int, shared bool) List[T] {
	slices.SortFunc(objects, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return firstPage(objects, version, listInfo{resource: p.Resource(), limit: limit, shared: shared, made: time.Now()})
}

// listLive lists from the server. The objects need no copies, because the cache does not have them.
func (p *Partial[T]) listLive(ctx context.Context, o ListOptions, where []Selection[T]) (List[T], error) {
	var request api.Options[T]
	if o.Labels != nil {
		request.LabelSelector = o.Labels.String()
	}
	selected := []T{}
	meta, err := p.live.List(ctx, request, func(object T) error {
		if matches(o, where, object) {
			selected = append(selected, object)
		}
		return nil
	})
	if err != nil {
		return List[T]{}, err
	}
	return p.newList(selected, meta.ResourceVersion, o.Limit, true), nil
}

// matches reports whether an object is selected. It need not check labels of a T without labels: waitListable has
// rejected the selector, or the server has evaluated it.
func matches[T api.Object](o ListOptions, where []Selection[T], object T) bool {
	if len(o.Namespaces) > 0 {
		if _, wanted := slices.BinarySearch(o.Namespaces, object.GetNamespace()); !wanted {
			return false
		}
	}
	if l, ok := any(object).(labeled); ok && o.Labels != nil && !o.Labels.Matches(labels.Set(l.GetLabels())) {
		return false
	}
	return !slices.ContainsFunc(where, func(s Selection[T]) bool { return !s.matches(object) })
}
