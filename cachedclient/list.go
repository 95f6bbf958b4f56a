package cachedclient

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// listAge is how long the pages of a list can be asked for: as long as an API server keeps a continue token, with its
// etcd compacted every five minutes.
const listAge = 5 * time.Minute

// ListOptions say what to list and how. The zero value is everything, copied, at once.
type ListOptions struct {
	// Namespaces confines the list to these. None means all that are cached. Every object of the cache is looked at:
	// for one namespace among thousands, give the informer an index, cache.ByNamespace, and select with By.
	Namespaces []string
	// Labels selects objects by their labels; nil selects all. T must have labels.
	Labels labels.Selector
	// Limit is how many items come at once; List.Next has the next ones. Zero means all.
	Limit int
	// Shared spares the copies: the items are the cache's own and must not be changed.
	// It corresponds to UnsafeDisableDeepCopy of controller-runtime.
	Shared bool
}

// Selection picks objects by the value of an index. Make one with By.
type Selection[T api.Object] struct {
	in  func(*cache.Snapshot[T]) iter.Seq2[api.Key, T]
	has func(T) bool
}

// By selects the objects that have a value in an index of the informer's cache:
//
//	byNode := informer.AddIndex(pods, func(p *Pod) []string { return []string{p.Spec.NodeName} })
//	list, err := pods.List(ctx, cachedclient.ListOptions{}, cachedclient.By(byNode, "n1"))
//
// It corresponds to MatchingFields of controller-runtime, with an index that need not be named.
func By[T api.Object, V comparable](index *cache.Index[T, V], value V) Selection[T] {
	return Selection[T]{
		in:  func(s *cache.Snapshot[T]) iter.Seq2[api.Key, T] { return index.In(s, value) },
		has: func(object T) bool { return index.Has(object, value) },
	}
}

// List is what a cache held at one moment, or a page of it.
type List[T api.Object] struct {
	// Items are in the order of their namespaces and, within one, of their names.
	Items []T
	// ResourceVersion is that of the cache, or of the server's list. With an overlay, some items may be newer.
	ResourceVersion string
	// Remaining is how many items there are after these; Next has them.
	Remaining int

	rest []T // shared
	page pages
}

// pages is what the pages of a list have in common.
type pages struct {
	resource api.Resource
	limit    int
	shared   bool
	taken    time.Time
}

// Next returns the next page: of the same moment, whatever has happened since. It has no items if there are no more.
// The error is an *ExpiredError when the list is older than five minutes, so that nobody acts on a world that is gone;
// what has been kept for the pages is freed with the List.
func (l List[T]) Next() (List[T], error) {
	if time.Since(l.page.taken) > listAge {
		return List[T]{}, &ExpiredError{Resource: l.page.resource, ResourceVersion: l.ResourceVersion, Age: listAge}
	}
	return cut(l.rest, l.ResourceVersion, l.page), nil
}

// cut takes the first page off.
func cut[T api.Object](rest []T, version string, p pages) List[T] {
	n := len(rest)
	if p.limit > 0 {
		n = min(n, p.limit)
	}
	l := List[T]{Items: make([]T, n), ResourceVersion: version, Remaining: len(rest) - n, rest: rest[n:], page: p}
	for i, object := range rest[:n] {
		if !p.shared {
			object = api.Clone(object)
		}
		l.Items[i] = object
	}
	return l
}

// List returns copies of the objects that the options and all the selections pick, in the order of their keys. The
// first selection is looked up in its index, the others are asked about what it yields. List blocks as Get does. With
// several questions to one state, ask the informer's Snapshot instead. It corresponds to client.Reader.List of
// controller-runtime, which has no order, no version and one page.
func (p *Partial[T]) List(ctx context.Context, o ListOptions, where ...Selection[T]) (List[T], error) {
	o.Namespaces = slices.Sorted(slices.Values(o.Namespaces)) // in the order that picks looks them up
	h, err := p.held.orStart()
	switch {
	case err == nil && h == nil && p.o.ReadLive:
		return p.listLive(ctx, o, where)
	case err == nil && h == nil:
		err = &NotCachedError{Resource: p.Resource()}
	case err == nil:
		err = h.listable(ctx, o)
	}
	if err != nil {
		return List[T]{}, fmt.Errorf("list %s: %w", p.Resource(), err)
	}
	snapshot, differently := h.look()
	chosen := choose(snapshot, differently, o, where)
	return p.begin(chosen, snapshot.ResourceVersion(), o.Limit, o.Shared), nil
}

// listable waits until the cache can answer.
func (h *cacheView[T]) listable(ctx context.Context, o ListOptions) error {
	var none T
	if _, labeled := any(none).(cache.Labeled); !labeled && o.Labels != nil && !o.Labels.Empty() {
		return fmt.Errorf("cachedclient: a %T has no labels to select by", none)
	}
	for _, namespace := range o.Namespaces {
		if !h.scope.reaches(namespace) {
			return &NotCachedError{Resource: h.informer.Resource(), Namespace: namespace}
		}
	}
	return h.readable(ctx, "")
}

// choose picks from a cache, and from what is to be shown differently.
func choose[T api.Object](s *cache.Snapshot[T], differently map[api.Key]shown[T], o ListOptions, where []Selection[T]) []T {
	candidates, others, chosen := s.All(), where, []T{}
	if len(where) > 0 {
		candidates, others = where[0].in(s), where[1:]
	}
	for key, object := range candidates {
		if _, differs := differently[key]; !differs && picks(o, others, object) {
			chosen = append(chosen, object)
		}
	}
	for _, instead := range differently {
		if instead.found && picks(o, where, instead.object) {
			chosen = append(chosen, instead.object)
		}
	}
	return chosen
}

// begin sorts what was chosen and returns its first page.
func (p *Partial[T]) begin(chosen []T, version string, limit int, shared bool) List[T] {
	slices.SortFunc(chosen, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return cut(chosen, version, pages{resource: p.Resource(), limit: limit, shared: shared, taken: time.Now()})
}

// listLive does the same with what the server has. The items are the caller's without being copied.
func (p *Partial[T]) listLive(ctx context.Context, o ListOptions, where []Selection[T]) (List[T], error) {
	var asked api.Options[T]
	if o.Labels != nil {
		asked.LabelSelector = o.Labels.String()
	}
	chosen := []T{}
	meta, err := p.live.List(ctx, asked, func(object T) error {
		if picks(o, where, object) {
			chosen = append(chosen, object)
		}
		return nil
	})
	if err != nil {
		return List[T]{}, err
	}
	return p.begin(chosen, meta.ResourceVersion, o.Limit, true), nil
}

// picks tells whether an object is to be listed. One that has no labels comes here only if they exclude nothing, or if
// the server has asked for them.
func picks[T api.Object](o ListOptions, where []Selection[T], object T) bool {
	if len(o.Namespaces) > 0 {
		if _, wanted := slices.BinarySearch(o.Namespaces, object.GetNamespace()); !wanted {
			return false
		}
	}
	if labeled, ok := any(object).(cache.Labeled); ok && o.Labels != nil && !o.Labels.Matches(labels.Set(labeled.GetLabels())) {
		return false
	}
	return !slices.ContainsFunc(where, func(s Selection[T]) bool { return !s.has(object) })
}
