package cachedclient

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// scopesNow is the ListerWatcher of an informer that reads from scopes; see package scopes.
type scopesNow interface {
	// SelectorsIn returns the selector of each present scope that can have objects of a namespace. The cache may not
	// have these objects yet.
	SelectorsIn(namespace string) []api.Selector
}

// scopesRead is the note of a snapshot of such an informer: the scopes that the snapshot was read from.
type scopesRead interface {
	// Version returns the oldest version of the scopes that can have objects of a namespace.
	Version(namespace string) string
	// Listed reports whether there are such scopes, and all of them have their first list.
	Listed(namespace string) bool
	// Selectors returns the selector of each of them.
	Selectors(namespace string) []api.Selector
}

// versionIn returns the version that the objects of a namespace have reached.
func versionIn[T api.Object](s *cache.Snapshot[T], namespace string) string {
	if read, ok := s.Note().(scopesRead); ok {
		return read.Version(namespace)
	}
	return s.ResourceVersion()
}

// selectorsIn returns the selectors with which an informer reads a namespace from scopes. A scope that was just added
// may not be in the snapshot yet. Only then it takes a lock.
func selectorsIn[T api.Object](now scopesNow, s *cache.Snapshot[T], namespace string) []api.Selector {
	if read, ok := s.Note().(scopesRead); ok {
		if selectors := read.Selectors(namespace); len(selectors) > 0 {
			return selectors
		}
	}
	return now.SelectorsIn(namespace)
}

// includesNamespace reports whether the informer caches a namespace. The empty namespace means all that it caches.
func (v *cacheView[T]) includesNamespace(namespace string) bool {
	if v.scopes == nil {
		return v.scope.includesNamespace(namespace)
	}
	return namespace == "" || len(selectorsIn(v.scopes, v.informer.Snapshot(), namespace)) > 0
}

// includes reports whether the informer caches an object.
func (v *cacheView[T]) includes(object T) bool {
	if v.scopes == nil {
		return v.scope.includes(object)
	}
	if v.scope.selects != nil && !v.scope.selects(object) {
		return false
	}
	return slices.ContainsFunc(v.scopes.SelectorsIn(object.GetNamespace()), func(selector api.Selector) bool {
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
	listed := func(s *cache.Snapshot[T]) bool {
		read, ok := s.Note().(scopesRead)
		return ok && read.Listed(namespace)
	}
	if listed(v.informer.Snapshot()) { // without the informer's lock, which WaitUntil takes
		return nil
	}
	if err := v.informer.WaitUntil(ctx, listed); err != nil {
		return &NotSyncedError{Status: v.informer.Status(), Err: err}
	}
	return nil
}

// removed reports whether an informer that reads from scopes has none for a namespace any more. Then its cache does not
// show writes there.
func removed[T api.Object](i *informer.Informer[T], s *cache.Snapshot[T], namespace string) bool {
	if read, ok := s.Note().(scopesRead); !ok || len(read.Selectors(namespace)) > 0 {
		return false
	}
	now, ok := api.As[scopesNow](i.ListerWatcher())
	return ok && len(now.SelectorsIn(namespace)) == 0
}

// listed reports whether the cache has the first lists of what it reads of a namespace.
func listed[T api.Object](i *informer.Informer[T], s *cache.Snapshot[T], namespace string) bool {
	if read, ok := s.Note().(scopesRead); ok {
		return read.Listed(namespace)
	}
	return runstate.IsClosed(i.Synced())
}
