package informer

import (
	"fmt"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// Status describes the state of an informer: its reflector, its cache and its handlers.
type Status struct {
	// Name describes the collection in a few words: the resource, and the namespace and selectors if there are any.
	Name     string
	Resource api.Resource
	// Running reports whether Run was called and has not begun to end.
	Running bool
	// Reflector describes requests, errors and received versions.
	Reflector reflector.Status
	// Synced reports whether the cache holds the first list. Objects is the number of cached objects, and
	// ResourceVersion the version of the cache.
	Synced          bool
	Objects         int
	ResourceVersion string
	// Depth is the number of objects whose changes wait in the DeltaFIFO for the next batch.
	Depth int
	// Undecodable is the number of objects whose newest state could not be decoded or transformed. The cache holds
	// their last good state, or does not hold them.
	Undecodable int
	// HeardAt is the time when the newest information in the cache was received: an event, a bookmark or the end of a
	// list. The time since then bounds how old the cache may be. It is zero before the first list.
	HeardAt time.Time
	// Check describes the consistency checks, of all scopes if there are any. It is zero without Options.Check.
	Check    CheckStatus
	Handlers []HandlerStatus
	// Shard reports whether the server or the client drops the objects of other shards. It is zero if the informer
	// reads a whole collection.
	Shard ShardStatus
	// Scopes are the scopes of an informer of package scopes, ordered by name. Reflector then describes all of them:
	// the error of one that fails, the phase of one that is late, and the sums of their counters.
	Scopes []ScopeStatus
	// LateScopes says which scopes have no first list or fail, and why. It is empty if all are well.
	LateScopes string
}

// HandlerStatus describes the state of one handler. Its fields are the results of the methods of Registration.
type HandlerStatus struct {
	Name    string
	Synced  bool
	Pending int
	Panics  int64
	// StuckSince is the time when the call in flight began if it takes longer than Options.StuckAfter, and otherwise
	// zero.
	StuckSince time.Time
}

// Sharded is a ListerWatcher of a shard of a collection; see package scale/shardedsource. It is a capability: [api.As]
// finds it.
type Sharded[T any] interface {
	// Selects reports whether an object belongs to the shard. Package cachedclient calls it, so that a client does not
	// wait for an object of another shard.
	Selects(object T) bool
	// Shard reports whether the server or the client drops the objects of other shards. An informer shows it in its
	// Status.
	Shard() ShardStatus
}

// ShardStatus reports whether the server or the client drops the objects of other shards of a collection. It is zero
// for a source of a whole collection.
type ShardStatus struct {
	// By is "server" if the server sends only the objects of the shard, and "client" if it sends all of them. It is
	// "undecided" if no answer has shown yet what the server does, because there are no objects.
	By string
	// Since is when that was decided. It is zero if By is "undecided".
	Since time.Time
	// Reason is why the client drops objects. It is nil otherwise.
	Reason error
	// Dropped is the number of objects and events of other shards that the server has sent.
	Dropped uint64
}

// Status returns the state of the informer. It may be called on any goroutine, before, during and after Run.
func (i *Informer[T]) Status() Status {
	snapshot, synced := i.Snapshot(), runstate.IsClosed(i.Synced())
	p := i.pipeline.state()
	s := Status{
		Name:            p.feed.Name(),
		Resource:        i.Resource(),
		Running:         p.running,
		Reflector:       p.feed.Status(),
		Synced:          synced,
		Objects:         snapshot.Len(),
		ResourceVersion: snapshot.ResourceVersion(),
		Depth:           p.depth,
		Undecodable:     len(p.feed.Undecodable()),
		Check:           p.feed.Check(),
		Handlers:        p.handlers,
	}
	s.Scopes, s.LateScopes = p.feed.Scopes()
	if synced {
		s.HeardAt = p.feed.HeardAt(s.ResourceVersion, p.heardAt)
	}
	if shard, ok := api.As[Sharded[T]](i.lw); ok {
		s.Shard = shard.Shard()
	}
	return s
}

// pipelineState is what a Status needs of a pipeline. An interface with a method that returns a Status would make every
// program contain Status.String.
type pipelineState struct {
	feed     Feed
	running  bool
	depth    int
	heardAt  time.Time
	handlers []HandlerStatus
}

func (p *pipeline[T]) state() pipelineState {
	s := pipelineState{feed: p.feed, depth: p.fifo.Len()}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.running, s.heardAt = p.life == runstate.Running, p.heardAt
	for _, l := range p.handlers.all {
		s.handlers = append(s.handlers, HandlerStatus{
			Name: l.name, Synced: runstate.IsClosed(l.synced), Pending: l.pending(), Panics: l.panics.Load(),
			StuckSince: l.current.StuckSince(),
		})
	}
	return s
}

// String returns one line that explains why an informer is not synced, or how it is doing.
func (s Status) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", s.Name)
	if s.Reflector.Phase == reflector.Idle && !s.Running {
		b.WriteString("not running; was it, or its factory, added to the manager?")
		return b.String()
	}
	if s.Synced {
		fmt.Fprintf(&b, "synced, %s at version %s, %s", number(s.Objects, "1 object", "objects"), s.ResourceVersion, s.Reflector.Phase)
	} else {
		fmt.Fprintf(&b, "not synced, %s, %s received", s.Reflector.Phase, number(s.Reflector.Objects, "1 object", "objects"))
		if s.Reflector.Remaining > 0 {
			fmt.Fprintf(&b, " of %d", int64(s.Reflector.Objects)+s.Reflector.Remaining)
		}
	}
	if s.Depth > 0 {
		fmt.Fprintf(&b, ", %d queued", s.Depth)
	}
	if s.Undecodable > 0 {
		fmt.Fprintf(&b, ", %d undecodable", s.Undecodable)
	}
	if s.Reflector.Counters.Malformed > 0 {
		fmt.Fprintf(&b, ", %d malformed", s.Reflector.Counters.Malformed)
	}
	if s.Check.Missed > 0 {
		fmt.Fprintf(&b, ", %d missed and found by checks%s", s.Check.Missed, missedIn(s.Scopes))
	}
	if s.Check.Err != nil {
		fmt.Fprintf(&b, ", the last check failed: %v", s.Check.Err)
	}
	if s.Shard.Dropped > 0 {
		fmt.Fprintf(&b, ", %d of other shards dropped", s.Shard.Dropped)
	}
	if s.Reflector.Unversioned {
		b.WriteString(", objects change without a new version")
	}
	if s.Reflector.Err != nil && s.LateScopes == "" {
		fmt.Fprintf(&b, ", after %s: %v", number(s.Reflector.Attempt, "a failure", "failures"), s.Reflector.Err)
	}
	if s.Reflector.ProbeErr != nil {
		fmt.Fprintf(&b, ", unconfirmed since %s: %v", s.Reflector.UnconfirmedSince.Format(time.TimeOnly), s.Reflector.ProbeErr)
	}
	if s.Reflector.RetryAfter > 0 {
		fmt.Fprintf(&b, " (the server asked for a pause of %v)", s.Reflector.RetryAfter)
	}
	if s.LateScopes != "" {
		b.WriteString("; " + s.LateScopes)
	}
	return b.String()
}

const mostNamed = 3 // scopes in a text

// missedIn names the scopes whose checks found something.
func missedIn(all []ScopeStatus) string {
	var names []string
	for _, s := range all {
		if s.Check.Missed > 0 {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return " (scopes: " + strings.Join(names, ", ") + more + ")"
}

// number returns one for 1, and otherwise n and what it counts.
func number(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("%d %s", n, many)
}
