package testserver

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// Injection is an active fault. All methods may be called on any goroutine.
type Injection struct{ active *disturb.Injection }

// Seen returns the number of effects that reached a client: a failed answer, a missing frame, a 410 because of a
// compaction. It is zero if no request has met the fault yet.
func (i *Injection) Seen() int { return i.active.Seen() }

// Wait blocks until Seen is at least n. If ctx ends first, it returns the cause of ctx.
func (i *Injection) Wait(ctx context.Context, n int) error { return i.active.Wait(ctx, n) }

// Remove ends the fault. Stalled answers and delayed frames continue. A second call does nothing.
func (i *Injection) Remove() { i.active.Remove() }

// Inject activates a fault. Disconnect, Compact, Restore and Outage happen during the call. It panics if the fault has
// no effect, or a state that is not a Snapshot.
func (s *Server) Inject(f faults.Fault) *Injection {
	i := s.plan.New(f)
	switch e := f.Effect.(type) {
	case nil:
		panic("testserver: inject: Fault.Effect is nil")
	case faults.Stale:
		snapshotOf(e.At)
	case faults.Disconnect:
		s.disconnect(i, e)
	case faults.Compact:
		s.compact(i)
	case faults.Restore:
		s.restore(i, snapshotOf(e.To))
	case faults.Outage:
		s.resetAll(i)
	}
	s.plan.Add(i)
	return &Injection{i}
}

// MatchFor returns what faults.Match.Resource must be for a resource that the server serves, if the name is another one
// of its names: a singular, a kind, a short name, or a name without the group. For example, it returns "configmaps" for
// "configmap", and "deployments.apps/status" for "deploy/status". It returns "" if the name is right or unknown.
func (s *Server) MatchFor(name string) string {
	name, subresource, _ := strings.Cut(name, "/")
	right := ""
	for _, d := range s.store.Definitions() {
		full := d.GroupResource().String()
		if full == name {
			return ""
		}
		plain, group, _ := strings.Cut(strings.ToLower(name), ".")
		known := plain == d.Plural || plain == d.SingularName() || slices.Contains(d.ShortNames, plain)
		if right == "" && known && (group == "" || group == d.Group) {
			right = full
		}
	}
	if right != "" && subresource != "" {
		right += "/" + subresource
	}
	return right
}

// Heal removes all faults.
func (s *Server) Heal() {
	for _, i := range s.plan.Active() {
		i.Remove()
	}
}

// snapshotOf returns the state of an effect.
func snapshotOf(s faults.State) *Snapshot {
	out, ok := s.(*Snapshot)
	if !ok || out == nil {
		panic(fmt.Sprintf("testserver: inject: the state of a fault is a %T; it must be a Snapshot", s))
	}
	return out
}

// disconnect ends the matching open watches.
func (s *Server) disconnect(i *disturb.Injection, e faults.Disconnect) {
	s.watches.end(func(t disturb.Target) (ending, bool) {
		if !t.Matches(i.Fault.Match) || !i.Claim() {
			return ending{}, false
		}
		return ending{injection: i, status: e.Error, abrupt: e.Abrupt}, true
	})
}

func (s *Server) compact(i *disturb.Injection) {
	s.store.Lock()
	defer s.store.Unlock()
	i.Version = s.store.Version()
	s.store.Compact()
}

func (s *Server) restore(i *disturb.Injection, to *Snapshot) {
	s.store.Lock()
	i.Version = s.store.Version()
	s.writer.Restore(to.state)
	s.store.Unlock()
	s.watches.end(func(disturb.Target) (ending, bool) { return ending{abrupt: true}, true })
}

// resetAll resets all connections, and the watches of ServeHTTP.
func (s *Server) resetAll(i *disturb.Injection) {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		pipe.Reset(c)
		i.CountSeen()
	}
	s.watches.end(func(disturb.Target) (ending, bool) { return ending{abrupt: true}, true })
}

// refuses reports whether an Outage refuses connections.
func (s *Server) refuses() bool {
	_, i := disturb.Happens[faults.Outage](&s.plan)
	i.CountSeen()
	return i != nil
}

// staleView returns the old state that a Stale fault prescribes for a request. It decides once for each request. A list
// or watch without a version is a consistent read.
func (x *call) staleView() (store.View, bool) {
	if consistent := x.request.Verb != "get" && x.request.Query.Get("resourceVersion") == ""; consistent {
		return store.View{}, false
	}
	if !x.staleDecided {
		x.staleDecided = true
		e, i := disturb.Request[faults.Stale](x.plan, x.target())
		if i != nil {
			x.stale, x.staleState = i, snapshotOf(e.At).state
			x.store.Lock()
			if x.staleState.Version() < x.store.Version() {
				i.CountSeen()
			}
			x.store.Unlock()
		}
	}
	if x.stale == nil {
		return store.View{}, false
	}
	select {
	case <-x.stale.Removed():
		return store.View{}, false
	default:
	}
	return x.staleState.View(x.def.GroupResource()), true
}

// newestVisible returns the newest version that a watch may send.
func (x *call) newestVisible() uint64 {
	if v, ok := x.staleView(); ok {
		return v.Version
	}
	return math.MaxUint64
}

// Play makes a change as another server made it. It stores obj as it is, with its UID and its resource version, and
// nothing checks or completes it; if kind is watch.Deleted, it removes the object. version is the version of
// the change. If the server has reached the version already, the change gets the next one. A definition of a
// custom resource that is played has no effect on what is served: see Define. Play fails if the resource is not served
// in its version, or if obj is not an object.
func (s *Server) Play(r api.Resource, kind watch.EventType, obj any, version string) error {
	tree, err := object.From(obj)
	if err == nil {
		err = writer.CheckShape(tree)
	}
	number, parseErr := strconv.ParseUint(version, 10, 63)
	if err == nil && parseErr != nil {
		err = fmt.Errorf("the resource version %q is not a number", version)
	}
	if err != nil {
		return fmt.Errorf("testserver: play: %w", err)
	}
	meta := object.Metadata(tree)
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	return s.directly(r, func(c *store.Collection) error {
		if !c.Definition().Serves(r.Version) {
			return fmt.Errorf("testserver: play: %s is not served in version %s", r, r.Version)
		}
		before := c.Get(key)
		switch {
		case kind != watch.Deleted:
			s.store.Reach(number - 1)
			_, err = s.store.Put(c, before, tree)
		case before != nil:
			s.store.Reach(number - 1)
			s.store.Drop(c, before)
		}
		return err
	})
}
