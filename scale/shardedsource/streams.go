package shardedsource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/scale/scopes"
)

// maxPieces is the largest number of streams of one range. One more, and a single stream replaces them. So a range that
// grows often costs one list in maxPieces changes, and not one stream for each.
const maxPieces = 4

// Scopes gives a scopes.Set the ranges of one replica: each range is one scope or a few. It is a hashrange.Follower.
type Scopes[T api.Object] struct {
	set     *scopes.Set[T]
	from    api.ListerWatcher[T]
	field   hashrange.Field
	logs    bool // Options.Logger was set
	report  *report
	changed chan struct{} // has an element if held or lost has changed

	mu        sync.Mutex // guards the fields below
	held      hashrange.Set
	lost      hashrange.Set // hashes that were not held at some time since the last take; held may have them again
	listed    hashrange.Set // hashes whose objects the cache has, in their state since held has them
	followers []*follower

	streams []*stream // only Run uses it
}

// follower is a follower that comes after the Scopes.
type follower struct {
	hashrange.Follower

	told hashrange.Set // of the last call
}

// stream is a scope of the set.
type stream struct {
	hashrange.Range

	name   string
	stale  hashrange.Set   // hashes that this replica lost after the stream began
	merge  bool            // a larger stream replaces it
	synced <-chan struct{} // nil after it was closed
	gone   <-chan struct{} // nil until Remove
}

// NewScopes returns a follower that adds scopes to the set, and removes them, with the objects of from. Scopes of the
// caller may be in the set too, if they have other objects. It panics where New panics, and if the set is nil.
func NewScopes[T api.Object](set *scopes.Set[T], from api.ListerWatcher[T], field hashrange.Field, o Options) *Scopes[T] {
	if set == nil {
		panic("shardedsource: the set of scopes is nil")
	}
	if own := New(from, field, hashrange.All(), o).Collection().Resource; own != set.Resource() {
		panic(fmt.Sprintf("shardedsource: the source is of %s, and the set is of %s", own, set.Resource()))
	}
	return &Scopes[T]{
		set: set, from: from, field: field, logs: o.Logger != nil, report: newReport(o.Logger, set.Resource()), changed: make(chan struct{}, 1),
	}
}

// Follow implements hashrange.Follower. It does not block: Run adds and removes the scopes.
func (s *Scopes[T]) Follow(held hashrange.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = s.lost.Union(s.held.Minus(held))
	s.held = held
	s.tell(s.listed.Intersect(held))
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Then adds a follower that gets a range later than s, when the cache of the set has the objects of the range, and that
// loses it together with s. So a controller begins with a range after its children have been listed:
//
//	member.Follow(pods)
//	pods.Then(replicaSets)
//
// The returned function removes the follower. Neither blocks. A follower must not call it.
func (s *Scopes[T]) Then(f hashrange.Follower) (remove func()) {
	added := &follower{Follower: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(s.followers, added)
	added.tell(s.listed)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.followers = slices.DeleteFunc(s.followers, func(f *follower) bool { return f == added })
	}
}

// tell records which hashes are listed, and tells the followers. The caller holds the lock.
func (s *Scopes[T]) tell(listed hashrange.Set) {
	s.listed = listed
	for _, f := range s.followers {
		f.tell(listed)
	}
}

func (f *follower) tell(listed hashrange.Set) {
	if !f.told.Equal(listed) {
		f.told = listed
		f.Follow(listed)
	}
}

// list records that the cache has the objects of some hashes. What was lost since the last take may be old.
func (s *Scopes[T]) list(listed hashrange.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(listed.Minus(s.lost).Intersect(s.held))
}

// take returns the ranges, and what was lost since the last call.
func (s *Scopes[T]) take() (held, lost hashrange.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, s.lost = s.lost, nil
	return s.held, lost
}

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. It must be called before
// Run.
func (s *Scopes[T]) UseLogger(log *zap.Logger) {
	if !s.logs {
		s.report = newReport(log, s.set.Resource())
	}
}

// NeedLeaderElection returns false: each replica reads its own ranges. See manager.LeaderElectionRunnable.
func (s *Scopes[T]) NeedLeaderElection() bool { return false }

// Run adds and removes scopes until ctx ends. Then it returns nil, and the scopes stay in the set. It must be called
// once, before the set runs or while it runs. If the set ends first, Run waits for ctx.
func (s *Scopes[T]) Run(ctx context.Context) error {
	for s.step() {
		if !s.wait(ctx) {
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// step does everything that can be done now. It returns false if the set is ending.
func (s *Scopes[T]) step() bool {
	held, lost := s.take()
	for _, t := range s.streams {
		t.stale = t.stale.Union(hashrange.NewSet(t.Range).Intersect(lost))
	}
	s.streams = slices.DeleteFunc(s.streams, (*stream).isGone)
	s.merge(held)
	var clean, listed, blocked, cached hashrange.Set
	for _, t := range s.streams {
		own := hashrange.NewSet(t.Range)
		if t.gone == nil && t.isSynced() {
			cached = cached.Union(own.Minus(t.stale))
		}
		switch {
		case !t.leaves():
			clean = clean.Union(own)
			if t.isSynced() {
				listed = listed.Union(own)
			}
		default:
			// The cache has these objects from before another replica worked on them. They must go before a new
			// list, so that handlers get them again.
			blocked = blocked.Union(t.stale)
		}
	}
	for _, r := range held.Minus(clean).Minus(blocked) {
		if !s.add(r) {
			return false
		}
	}
	for _, t := range s.streams {
		kept := hashrange.NewSet(t.Range).Intersect(held).Minus(t.stale)
		if t.leaves() && t.gone == nil && kept.Minus(listed).Empty() {
			if t.gone = s.set.Remove(t.name, scopes.Silent); t.gone == nil {
				return false
			}
		}
	}
	s.list(cached)
	return true
}

// merge marks the streams of a range that has too many. It waits until no other stream is about to go.
func (s *Scopes[T]) merge(held hashrange.Set) {
	if slices.ContainsFunc(s.streams, (*stream).leaves) {
		return
	}
	for _, r := range held {
		var pieces []*stream
		for _, t := range s.streams {
			if r.Contains(t.From) {
				pieces = append(pieces, t)
			}
		}
		if len(pieces) > maxPieces {
			for _, t := range pieces {
				t.merge = true
			}
		}
	}
}

// add adds a scope. It returns false if the set is ending.
func (s *Scopes[T]) add(r hashrange.Range) bool {
	t := &stream{Range: r, name: r.String()}
	source := &newest[T]{newSource(s.from, newDecision(s.field, hashrange.NewSet(r), s.report))}
	for n := 2; ; n++ {
		err := s.set.Add(scopes.Scope[T]{Name: t.name, Source: source})
		if errors.Is(err, scopes.ErrNameTaken) { // by a stream that is about to go, or by the caller
			t.name = fmt.Sprintf("%s #%d", r, n)
			continue
		}
		if err != nil { // the set is ending; NewScopes has ruled out other errors
			return false
		}
		t.synced = s.set.ScopeSynced(t.name)
		s.streams = append(s.streams, t)
		return true
	}
}

// wait waits until a step may have something to do. It returns false if ctx has ended.
func (s *Scopes[T]) wait(ctx context.Context) bool {
	cases := []reflect.SelectCase{receive(ctx.Done()), receive(s.changed)}
	for _, t := range s.streams {
		if t.gone != nil {
			cases = append(cases, receive(t.gone))
		} else if t.synced != nil { // not isSynced, because a list that ends after step needs another step
			cases = append(cases, receive(t.synced))
		}
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen != 0
}

func receive[C <-chan struct{} | chan struct{}](c C) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
}

// leaves reports whether the stream is to be removed.
func (t *stream) leaves() bool { return t.merge || !t.stale.Empty() }

// isSynced reports whether the cache has the first list of the stream.
func (t *stream) isSynced() bool {
	select {
	case <-t.synced:
		t.synced = nil
	default:
	}
	return t.synced == nil
}

// isGone reports whether the cache does not have the objects of the stream any more.
func (t *stream) isGone() bool {
	if t.gone == nil {
		return false
	}
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// newest is a source whose lists have the newest state. A list of any version, or of the version that the other scopes
// have reached, may lack the last writes of the replica that had the range before.
type newest[T api.Object] struct{ *Source[T] }

// List implements api.ListerWatcher.
func (s *newest[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	return s.Source.List(ctx, o, each)
}

// Watch implements api.ListerWatcher.
func (s *newest[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		o.ResourceVersion = ""
	}
	return s.Source.Watch(ctx, o)
}
