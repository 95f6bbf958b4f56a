package informer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// Feed fills the queue of an informer: one reflector, or those of package scopes. Only Run blocks.
type Feed interface {
	// Run fills the queue until ctx ends, and returns nil then. Its goroutines have ended when it returns.
	Run(ctx context.Context) error
	// Name describes the collection in a few words.
	Name() string
	// Status returns what the reflectors are doing.
	Status() reflector.Status
	// Check returns the result of the consistency checks; see Options.Check.
	Check() CheckStatus
	// Scopes returns the scopes, ordered by name, and a text that says which of them are late and why. A feed of one
	// stream has none.
	Scopes() (all []ScopeStatus, late string)
	// HeardAt returns when the newest state in the cache was received. version is the version of the cache, and applied
	// is when the newest batch in the cache was received.
	HeardAt(version string, applied time.Time) time.Time
	// Undecodable returns the objects whose newest state could not be decoded.
	Undecodable() []*api.UndecodableError
	// UseLogger sets the logger before Run, if the options have none.
	UseLogger(log *zap.Logger)
	// Logger returns the logger.
	Logger() *zap.Logger
}

// stream is the Feed of one list and watch stream: a reflector, and Options.Check beside it.
type stream[T api.Object] struct {
	*reflector.Reflector[T]
	lw    api.ListerWatcher[T]
	p     *pipeline[T]
	check atomic.Pointer[CheckStatus] // nil before Options.Check has reported
}

// streamOf returns a function for newPipeline.
func streamOf[T api.Object](lw api.ListerWatcher[T]) func(*pipeline[T]) Feed {
	return func(p *pipeline[T]) Feed {
		o := p.o.reflector()
		if p.o.Mutations == nil { // a detector may block, and must not block the reflector
			o.OnWait = p.flush
		}
		return &stream[T]{Reflector: reflector.New(lw, p.fifo, o), lw: lw, p: p}
	}
}

// Run implements Feed.
func (s *stream[T]) Run(ctx context.Context) error {
	var checks sync.WaitGroup
	defer checks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.p.o.Check != nil {
		checks.Go(func() { s.p.o.Check.Run(ctx, s.checked()) })
	}
	return s.Reflector.Run(ctx)
}

// checked returns what Options.Check needs.
func (s *stream[T]) checked() Checked {
	o := &s.p.o
	return Checked{
		Source: s.lw, Selector: o.Selector, PageSize: o.PageSize, Rand: o.Rand, Logger: s.Logger(), Synced: s.p.events.synced,
		State: func() Identities { return s.p.indexer.Snapshot() }, Undecodable: s.Undecodable,
		WaitFor: s.p.waitFor,
		Relist:  s.Relist, Report: func(c CheckStatus) { s.check.Store(&c) },
	}
}

// Check implements Feed.
func (s *stream[T]) Check() (c CheckStatus) {
	if reported := s.check.Load(); reported != nil {
		c = *reported
	}
	return c
}

// Scopes implements Feed.
func (s *stream[T]) Scopes() ([]ScopeStatus, string) { return nil, "" }

// HeardAt implements Feed. If the cache shows everything that was received, bookmarks and probes count too.
func (s *stream[T]) HeardAt(version string, applied time.Time) time.Time {
	if now := s.Status(); now.ResourceVersion == version && now.CaughtUpAt.After(applied) {
		return now.CaughtUpAt
	}
	return applied
}

// ScopeStatus describes one scope of an informer.
type ScopeStatus struct {
	Name      string
	Namespace string // empty means all
	Selector  api.Selector
	// Synced reports whether the cache holds the first list of the scope.
	Synced          bool
	Objects         int
	ResourceVersion string // of the scope in the cache
	Undecodable     int
	Shard           ShardStatus // zero if the scope reads a whole collection
	Check           CheckStatus // of this scope; zero without Options.Check
	Reflector       reflector.Status
}
