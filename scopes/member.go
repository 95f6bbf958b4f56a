package scopes

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// member is a scope of a Set, with its reflector.
type member[T api.Object] struct {
	scope     Scope[T]
	named     bool // by the user
	store     *deltafifo.Scope[T]
	reflector *reflector.Reflector[T]
	lists     chan struct{}                        // of the Set
	queued    atomic.Bool                          // the reflector waits for lists
	listing   bool                                 // the member has an element in lists; only the reflector's goroutine uses it
	gone      chan struct{}                        // closed when the cache does not have the objects any more
	check     atomic.Pointer[informer.CheckStatus] // nil before the check has reported

	// The mutex of the Set guards the fields below.
	cancel  context.CancelFunc // nil before the reflector starts
	removed bool
	silent  bool
}

// newMember returns a member that does not run. The mutex of the Set is held.
func (s *Set[T]) newMember(scope Scope[T], named bool) *member[T] {
	m := &member[T]{
		scope: scope, store: s.queue.Add(namespaceOf(scope.Source), scope.Selector), lists: s.lists, gone: make(chan struct{}),
	}
	o := s.each
	o.Selector, o.NotOlderThan = scope.Selector, s.queue.Newest()
	o.BeforeList = func(ctx context.Context) {
		if s.each.BeforeList != nil {
			s.each.BeforeList(ctx)
		}
		m.beforeList(ctx)
	}
	m.named = named
	o.Logger = m.logger(s.log)
	o.OnRequest = func(r reflector.Request) {
		if r.Err != nil || r.Complete {
			m.endList()
		}
		if s.each.OnRequest != nil {
			s.each.OnRequest(r)
		}
	}
	m.reflector = reflector.New(scope.Source, reflector.Store[T](listEnd[T]{m.store, m}), o)
	return m
}

// logger returns a logger whose entries name the scope, or nil for nil.
func (m *member[T]) logger(log *zap.Logger) *zap.Logger {
	if log == nil || !m.named {
		return log
	}
	return log.With(zap.String("scope", m.scope.Name))
}

// shard returns who drops the objects of other shards.
func (m *member[T]) shard() (s api.ShardStatus) {
	if shard, ok := m.scope.Source.(interface{ Shard() api.ShardStatus }); ok {
		s = shard.Shard()
	}
	return s
}

// beforeList waits until fewer lists are in progress.
func (m *member[T]) beforeList(ctx context.Context) {
	if m.listing {
		return
	}
	m.queued.Store(true)
	defer m.queued.Store(false)
	select {
	case m.lists <- struct{}{}:
		m.listing = true
	case <-ctx.Done():
	}
}

// endList lets another list begin.
func (m *member[T]) endList() {
	if m.listing {
		m.listing = false
		<-m.lists
	}
}

// remove ends the reflector, whose goroutine then removes the objects. The mutex of the Set is held.
func (m *member[T]) remove(silent bool) {
	m.removed, m.silent = true, silent
	if m.cancel != nil {
		m.cancel()
	} else {
		m.store.Remove(silent, m.gone)
	}
}

// listEnd is the store of a reflector. It notices that a list is complete.
type listEnd[T api.Object] struct {
	*deltafifo.Scope[T]
	m *member[T]
}

// Replace implements reflector.Store.
func (l listEnd[T]) Replace(list []T, version string) {
	l.Scope.Replace(list, version)
	l.m.endList()
}

// Bookmark implements reflector.Store.
func (l listEnd[T]) Bookmark(version string) {
	l.Scope.Bookmark(version)
	l.m.endList()
}

// run runs the reflector of a member until ctx ends.
func (s *Set[T]) run(ctx context.Context, m *member[T]) error {
	err := m.reflector.Run(ctx)
	m.endList()
	s.mu.Lock()
	removed, silent := m.removed, m.silent
	s.mu.Unlock()
	switch {
	case removed:
		m.store.Remove(silent, m.gone)
	case err != nil:
		return fmt.Errorf("scope %s: %w", m.scope.Name, err)
	}
	return nil
}
