package scopes

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

// member is a scope of a Set, with its reflector.
type member[T api.Object] struct {
	scope     Scope[T]
	named     bool                // by the user
	sharded   informer.Sharded[T] // nil unless the source is of a shard
	store     *merge.Stream[T]
	reflector *reflector.Reflector[T]
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
		scope: scope, store: s.queue.Add(scope.Source.Collection().Namespace, scope.Selector), gone: make(chan struct{}),
	}
	m.sharded, _ = api.As[informer.Sharded[T]](scope.Source)
	o := s.each
	o.Selector, o.NotOlderThan = scope.Selector, s.queue.Newest()
	o.Gate = s.lists
	m.named = named
	o.Logger = m.logger(s.log)
	m.reflector = reflector.New(scope.Source, reflector.Store[T](m.store), o)
	return m
}

// logger returns a logger whose entries name the scope, or nil for nil.
func (m *member[T]) logger(log *zap.Logger) *zap.Logger {
	if log == nil || !m.named {
		return log
	}
	return log.With(zap.String("scope", m.scope.Name))
}

// shard reports whether the server or the client drops the objects of other shards.
func (m *member[T]) shard() (s informer.ShardStatus) {
	if m.sharded != nil {
		s = m.sharded.Shard()
	}
	return s
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

// run runs the reflector of a member until ctx ends.
func (s *Set[T]) run(ctx context.Context, m *member[T]) error {
	err := m.reflector.Run(ctx)
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
