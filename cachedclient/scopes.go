package cachedclient

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// selectorsIn returns the selectors with which an informer reads a namespace from scopes. A scope that was just added
// may not be in the snapshot yet. Only then it takes a lock.
func selectorsIn[T api.Object](i *informer.Informer[T], s *cache.Snapshot[T], namespace string) []api.Selector {
	if scopes := s.Scopes(); scopes != nil {
		if selectors := scopes.Selectors(namespace); len(selectors) > 0 {
			return selectors
		}
	}
	selectors, _ := i.Selectors(namespace)
	return selectors
}

// includesNamespace reports whether the informer caches a namespace. The empty namespace means all that it caches.
func (v *cacheView[T]) includesNamespace(namespace string) bool {
	if !v.scoped {
		return v.scope.includesNamespace(namespace)
	}
	return namespace == "" || len(selectorsIn(v.informer, v.informer.Snapshot(), namespace)) > 0
}

// includes reports whether the informer caches an object.
func (v *cacheView[T]) includes(object T) bool {
	if !v.scoped {
		return v.scope.includes(object)
	}
	if v.scope.selects != nil && !v.scope.selects(object) {
		return false
	}
	selectors, _ := v.informer.Selectors(object.GetNamespace())
	return slices.ContainsFunc(selectors, func(selector api.Selector) bool {
		return selector == api.Selector{} || v.scopeFor(selector).includes(object)
	})
}

// scopeFor returns the scope of a selector. Many scopes have the same selector, which is parsed once.
func (v *cacheView[T]) scopeFor(selector api.Selector) scope[T] {
	if parsed, ok := v.parsed.Load(selector); ok {
		return parsed.(scope[T])
	}
	parsed := parseSelectors[T](selector.Labels, selector.Fields)
	parsed.whole = v.scope.whole
	v.parsed.Store(selector, parsed)
	return parsed
}

// waitScopes blocks until the scopes of a namespace have their first lists.
func (v *cacheView[T]) waitScopes(ctx context.Context, namespace string) error {
	if s := v.informer.Snapshot().Scopes(); s != nil && s.Listed(namespace) {
		return nil
	}
	if err := v.informer.WaitForIn(ctx, namespace, "0"); err != nil {
		return &NotSyncedError{Status: v.informer.Status(), Err: err}
	}
	return nil
}

// removed reports whether an informer that reads from scopes has none for a namespace any more. Then its cache does not
// show writes there.
func removed[T api.Object](i *informer.Informer[T], s *cache.Snapshot[T], namespace string) bool {
	return s.Scopes() != nil && len(selectorsIn(i, s, namespace)) == 0
}

// listed reports whether the cache has the first lists of what it reads of a namespace.
func listed[T api.Object](i *informer.Informer[T], s *cache.Snapshot[T], namespace string) bool {
	if scopes := s.Scopes(); scopes != nil {
		return scopes.Listed(namespace)
	}
	return runstate.IsClosed(i.Synced())
}
