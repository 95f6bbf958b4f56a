package informer

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/reflector"
)

// Feed fills the queue of an informer. It is a reflector, or several for an informer that Compose makes. Its methods
// are those of reflector.Reflector. Only Run blocks.
type Feed interface {
	// Run fills the queue until ctx ends, and returns nil then.
	Run(ctx context.Context) error
	// Name describes the collection in a few words.
	Name() string
	// Status returns what the reflectors are doing.
	Status() reflector.Status
	// Undecodable returns the objects whose newest state could not be decoded.
	Undecodable() []*api.UndecodableError
	// UseLogger sets the logger before Run, if the options have none.
	UseLogger(log *zap.Logger)
	// Logger returns the logger.
	Logger() *zap.Logger
}

var _ Feed = (*reflector.Reflector[api.Object])(nil)

// Parts are the parts of an informer that reads from scopes. Package scopes makes them; most programs use that package.
type Parts struct {
	// Feed fills the queue. The batches of the queue have a deltafifo.ScopedBatch.
	Feed Feed
	// Scopes returns the state of each scope, ordered by name, and a text that says which of them are late and why.
	Scopes func() (all []ScopeStatus, late string)
	// Check returns the sum of the checks of all scopes. The informer does not run Options.Check; the feed runs it for
	// each scope.
	Check func() CheckStatus
	// Selectors returns the selector of each present scope that can have objects of a namespace.
	Selectors func(namespace string) []api.Selector
	// Observe calls f after every batch, also after one that has only versions or scopes. The returned function ends
	// the calls.
	Observe func(f func()) (stop func())
}

// Compose returns an informer whose queue is filled by a feed. make gets the new queue, and the options of a reflector
// that follow from o. lw tells the resource; the informer does not call its other methods. Compose panics if
// Options.Hold is set.
func Compose[T api.Object](
	lw api.ListerWatcher[T], o Options[T], make func(*deltafifo.DeltaFIFO[T], reflector.Options[T]) Parts,
) *Informer[T] {
	if o.Hold != nil {
		panic("informer: Compose cannot use Options.Hold; leave it nil")
	}
	i := newInformer(lw, o)
	p := make(i.fifo, o.reflector())
	i.scopes, i.scopeChecks, i.selectors, i.observeScopes = p.Scopes, p.Check, p.Selectors, p.Observe
	i.setFeed(p.Feed)
	return i
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
	Shard           api.ShardStatus // zero if the scope reads a whole collection
	Check           CheckStatus     // of this scope; zero without Options.Check
	Reflector       reflector.Status
}

// Selectors returns the selectors with which the informer reads objects of a namespace at present. The cache may not
// have these objects yet; see cache.Snapshot.Scopes. scoped is false if the informer has one stream; then Options and
// ListerWatcher say what it reads.
func (i *Informer[T]) Selectors(namespace string) (selectors []api.Selector, scoped bool) {
	if i.selectors == nil {
		return nil, false
	}
	return i.selectors(namespace), true
}

// ObserveScopes calls f after every batch of an informer that reads from scopes, also if the batch has no change of an
// object: it may have a version, the first list of a scope or the removal of one. The next batch waits for f. For an
// informer with one stream, it does nothing. The returned function ends the calls.
func (i *Informer[T]) ObserveScopes(f func()) (stop func()) {
	if i.observeScopes == nil {
		return func() {}
	}
	return i.observeScopes(f)
}

// completeScopes notes what a batch says about scopes. The informer's lock is held. The handlers have got the objects
// of each scope as they came, so the end of the initial list has no objects.
func (i *Informer[T]) completeScopes(b *deltafifo.ScopedBatch, at time.Time) {
	for _, applied := range b.Applied {
		close(applied)
	}
	if b.Complete {
		close(i.synced)
		i.broadcast(&group[T]{at: at, completes: true})
	}
}
