package scopes

import (
	"context"
	"fmt"
	"iter"
	"maps"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// checked returns what Options.Check needs of a scope. The check compares the objects that the stream of this scope has
// brought. So it also finds a change that this scope missed and another scope received.
func (s *Set[T]) checked(m *member[T]) informer.Checked {
	return informer.Checked{
		Source: checkSource[T]{m.scope.Source, s.checks}, Selector: m.scope.Selector, PageSize: s.each.PageSize, Rand: s.each.Rand,
		Logger: feed[T]{s}.Logger().With(zap.String("scope", m.scope.Name)), Synced: m.store.Listed(),
		State: func() informer.Identities { return m.identities() }, Undecodable: m.reflector.Undecodable,
		WaitFor: func(ctx context.Context, version string) error { return s.waitFor(ctx, m, version) },
		Relist:  m.reflector.Relist, Report: func(c informer.CheckStatus) { m.check.Store(&c) },
	}
}

// waitFor blocks until a scope has reached a version.
func (s *Set[T]) waitFor(ctx context.Context, m *member[T], version string) error {
	return s.WaitUntil(ctx, func(*cache.Snapshot[T]) bool {
		order, ok := api.CompareVersions(m.store.Version(), version)
		return ok && order >= 0
	})
}

// checkStatus sums up the checks of all scopes, including removed ones.
func (s *Set[T]) checkStatus() informer.CheckStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.pastChecks
	for _, m := range s.ordered() {
		all = withCheck(all, m)
	}
	return all
}

// withCheck adds the checks of a scope. Of their errors, it keeps the first one.
func withCheck[T api.Object](all informer.CheckStatus, m *member[T]) informer.CheckStatus {
	c := m.checkStatus()
	all.Checks += c.Checks
	all.Missed += c.Missed
	if c.At.After(all.At) {
		all.At = c.At
	}
	if c.Err != nil && all.Err == nil {
		all.Err = fmt.Errorf("scope %s: %w", m.scope.Name, c.Err)
	}
	return all
}

// checkStatus returns what the check of the scope has reported.
func (m *member[T]) checkStatus() informer.CheckStatus {
	if c := m.check.Load(); c != nil {
		return *c
	}
	return informer.CheckStatus{}
}

// identities returns the objects that the stream of the scope has brought.
func (m *member[T]) identities() identities[T] {
	list, version := m.store.Objects()
	i := identities[T]{version, make(map[api.Key]T, len(list))}
	for _, object := range list {
		i.objects[api.KeyOf(object)] = object
	}
	return i
}

// identities are the objects of a scope at a version. It implements informer.Identities.
type identities[T api.Object] struct {
	version string
	objects map[api.Key]T
}

// ResourceVersion implements informer.Identities.
func (i identities[T]) ResourceVersion() string { return i.version }

// Keys implements informer.Identities.
func (i identities[T]) Keys() iter.Seq[api.Key] { return maps.Keys(i.objects) }

// Identity implements informer.Identities.
func (i identities[T]) Identity(key api.Key) (uid types.UID, version string, exists bool) {
	object, exists := i.objects[key]
	if !exists {
		return "", "", false
	}
	return object.GetUID(), object.GetResourceVersion(), true
}

// checkSource is the source of a scope for its check.
type checkSource[T api.Object] struct {
	from  api.ListerWatcher[T]
	lists reflector.Gate
}

// Metadata returns the metadata of the source, with a bound on the lists, or nil if the source has none.
func (c checkSource[T]) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	from := api.MetadataOf(c.from)
	if from == nil {
		return nil
	}
	return boundedLists{from, c.lists}
}

// boundedLists delays a request while too many pages for checks are in progress.
//
// Rule: checks have a bound of their own. Reason: a check may wait long for a slow server, and no scope may wait for
// it. Price: with checks, the server gets up to twice as many lists at once.
type boundedLists struct {
	api.ListerWatcher[*metav1.PartialObjectMetadata]
	lists reflector.Gate
}

// List implements api.ListerWatcher.
func (b boundedLists) List(
	ctx context.Context, o api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error,
) (metav1.ListMeta, error) {
	defer b.lists.Enter(ctx)()
	return b.ListerWatcher.List(ctx, o, each)
}
