package informer

import (
	"context"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// Feed fills the queue of an informer: one reflector, or those of package scopes. Only Run blocks.
type Feed interface {
	// Run fills the queue until ctx ends, and returns nil then. Its goroutines have ended when it returns.
	Run(ctx context.Context) error
	// Describe completes the status of the informer: Name, Reflector, Check and Scopes. HeardAt is when the newest
	// state in the cache was received, and Describe corrects it if the feed knows better.
	Describe(s *Status)
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
	lw     api.ListerWatcher[T]
	p      *pipeline[T]
	status atomic.Pointer[CheckStatus] // nil before Options.Check has reported
}

// streamOf returns a function for newPipeline.
func streamOf[T api.Object](lw api.ListerWatcher[T]) func(*pipeline[T]) Feed {
	return func(p *pipeline[T]) Feed {
		o := p.o.reflector()
		if p.o.Mutations == nil { // it may block, and must not block the reflector
			o.OnWait = p.flush
		}
		return &stream[T]{Reflector: reflector.New(lw, p.fifo, o), lw: lw, p: p}
	}
}

// Run implements Feed.
func (s *stream[T]) Run(ctx context.Context) error {
	var check sync.WaitGroup
	defer check.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.p.o.Check != nil {
		check.Go(func() { s.p.o.Check.Run(ctx, s.checked()) })
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
		Relist:  s.Relist, Report: func(c CheckStatus) { s.status.Store(&c) },
	}
}

// Describe implements Feed.
func (s *stream[T]) Describe(status *Status) {
	status.Name, status.Reflector = s.Name(), s.Status()
	if check := s.status.Load(); check != nil {
		status.Check = *check
	}
	if status.Synced && status.Reflector.ResourceVersion == status.ResourceVersion { // the cache shows everything received
		status.HeardAt = latest(status.Reflector.CaughtUpAt, status.HeardAt)
	}
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
