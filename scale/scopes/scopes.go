package scopes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

// ErrNameTaken matches the error of Add for a name that another scope of the set has.
var ErrNameTaken = errors.New("scopes: the name is taken")

// defaultMaxLists is Options.MaxLists if it is 0.
const defaultMaxLists = 16

// Scope is one list and watch stream of an informer.
type Scope[T any] struct {
	// Name identifies the scope in its set. The default is the namespace of the source, or "all", and the selector.
	Name string
	// Source lists and watches the objects. If its Collection has a namespace, the scope has objects of this namespace
	// only.
	Source api.ListerWatcher[T]
	// Selector restricts which objects of the source are read.
	Selector api.Selector
}

// Options are the options of a Set. Those of the informer apply to each scope, except Selector, which must be empty,
// and Hold, which must be nil. Callbacks may run on several goroutines at once, one for each scope. Check runs once for
// each scope, until the scope is removed. It compares the objects that the scope has received with the server. A
// difference leads to a list of this scope only.
type Options[T api.Object] struct {
	informer.Options[T]
	// MaxLists is the largest number of lists in progress at once. A WatchList counts until its initial state is
	// complete. Checks have a bound of their own, which is as large. 0 means 16. A Gate replaces the bound on lists.
	MaxLists int
}

// Set is an informer that reads from scopes. Its field Informer is for caches, clients and controllers.
type Set[T api.Object] struct {
	*informer.Informer[T]

	resource api.Resource
	queue    *merge.Merger[T]
	each     reflector.Options[T] // of each scope
	lists    reflector.Gate
	check    informer.Check // nil means no checks
	checks   reflector.Gate // for the requests of checks
	active   sync.WaitGroup // the goroutines of Run

	mu        sync.Mutex  // guards the fields below
	log       *zap.Logger // nil before UseLogger, if Options.Logger is nil
	ownLogger bool
	members   map[string]*member[T]
	counters  reflector.Counters // of removed scopes, at their removal
	dropped   uint64             // as counters, for informer.ShardStatus
	// pastChecks are the checks of removed scopes.
	pastChecks informer.CheckStatus
	state      runstate.State
	start      func(*member[T]) // starts the goroutine of a scope; nil unless Run is active
	followed   []informer.Registration
	fatal      error
}

// New returns a set without scopes, for objects of one resource. It panics if Options.Selector or Options.Hold is
// set.
func New[T api.Object](resource api.Resource, o Options[T]) *Set[T] {
	if o.Selector != (api.Selector{}) {
		panic("scopes: Options.Selector has no effect; set Scope.Selector of each scope")
	}
	if o.Hold != nil {
		panic("scopes: Options.Hold has no effect, because scopes share decoded objects; leave it nil")
	}
	if o.MaxLists <= 0 {
		o.MaxLists = defaultMaxLists
	}
	s := &Set[T]{
		resource: resource, lists: o.Gate, members: map[string]*member[T]{},
		check: o.Check, checks: reflector.MaxLists(o.MaxLists),
		log: o.Logger, ownLogger: o.Logger != nil,
	}
	if s.lists == nil {
		s.lists = reflector.MaxLists(o.MaxLists)
	}
	s.Informer = informer.Compose(collection[T]{s}, o.Options,
		func(q *deltafifo.DeltaFIFO[T], each reflector.Options[T]) informer.Feed {
			s.queue, s.each = merge.New(q), each
			return feed[T]{s}
		})
	s.Trace(informer.Trace{Batch: func(informer.TracedBatch) { s.Snapshot().Note().(*merge.State).Applied() }})
	return s
}

// VersionIn returns the version that the objects of a namespace have reached in a snapshot of a Set: the oldest version
// of the scopes that can have such objects. It is empty if there is no such scope, if one of them has not listed yet,
// or if their versions have no order. The namespace of cluster-scoped objects is empty.
func VersionIn[T api.Object](s *cache.Snapshot[T], namespace string) string {
	if state, ok := s.Note().(*merge.State); ok {
		return state.Version(namespace)
	}
	return ""
}

// WaitForIn is WaitFor for the objects of one namespace: it waits only for the scopes that can have such objects, while
// WaitFor waits for all scopes. It also waits while there is no such scope.
func (s *Set[T]) WaitForIn(ctx context.Context, namespace, version string) error {
	return s.WaitUntil(ctx, func(now *cache.Snapshot[T]) bool {
		if state, ok := now.Note().(*merge.State); !ok || !state.Listed(namespace) {
			return false
		}
		order, ordered := api.CompareVersions(VersionIn(now, namespace), version)
		return version == "0" || ordered && order >= 0
	})
}

// Add adds a scope, before Run or while it runs. A scope of a running set begins with a list that is not older than the
// newest version of the set. The error matches ErrNameTaken, or informer.ErrStopped if Run is ending. The source must
// be of the resource of the set.
func (s *Set[T]) Add(scope Scope[T]) error {
	if scope.Source == nil {
		return errors.New("scopes: Scope.Source is nil; set it to a ListerWatcher")
	}
	if r := scope.Source.Collection().Resource; r != s.resource {
		return fmt.Errorf("scopes: the scope is of %s, and the set is of %s", r, s.resource)
	}
	named := scope.Name != ""
	scope.Name = cmp.Or(scope.Name, defaultName(scope))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state >= runstate.Ending {
		return fmt.Errorf("add scope %s of %s: %w", scope.Name, s.resource, informer.ErrStopped)
	}
	if s.members[scope.Name] != nil {
		return fmt.Errorf("add scope %s of %s: %w", scope.Name, s.resource, ErrNameTaken)
	}
	m := s.newMember(scope, named)
	s.members[scope.Name] = m
	if s.start != nil {
		s.start(m)
	}
	return nil
}

// Removal says what handlers get when a scope is removed.
type Removal int

const (
	// Notify calls handlers with a deletion of each object, with an unknown final state.
	Notify Removal = iota
	// Silent calls no handler, because another process has taken the objects over. If such an object is added again, a
	// handler gets a second addition, and one that coalesces may miss a deletion that follows at once.
	Silent
)

// Remove removes a scope and its objects, except those that another scope has. It does not wait. The returned channel
// is closed when the cache does not have the objects any more. It is nil if there is no scope of this name or if Run is
// ending, and it is not closed if the set stops before.
func (s *Set[T]) Remove(name string, r Removal) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[name]
	if m == nil || s.state >= runstate.Ending {
		return nil
	}
	delete(s.members, name)
	s.counters = sum(s.counters, m.reflector.Status().Counters)
	s.dropped += m.shard().Dropped
	s.pastChecks = withCheck(s.pastChecks, m)
	s.pastChecks.Err = nil
	m.remove(r == Silent)
	return m.gone
}

// ScopeSynced returns a channel that is closed when the cache has the first list of a scope. It is nil if there is no
// scope of this name. If the scope is removed before, the channel is never closed.
func (s *Set[T]) ScopeSynced(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[name]; m != nil {
		return m.store.Listed()
	}
	return nil
}

// Names returns the names of the scopes in ascending order.
func (s *Set[T]) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.members))
}

// defaultName names a scope by its namespace and its selector.
func defaultName[T any](s Scope[T]) string {
	name := cmp.Or(s.Source.Collection().Namespace, "all")
	if s.Selector.Labels != "" {
		name += ", labels " + s.Selector.Labels
	}
	if s.Selector.Fields != "" {
		name += ", fields " + s.Selector.Fields
	}
	return name
}

// collection is the ListerWatcher of the informer. Only the scopes send requests.
type collection[T api.Object] struct{ set *Set[T] }

var errNoRequest = errors.New("scopes: the informer reads from scopes; use the source of a scope")

// Collection implements api.ListerWatcher.
func (c collection[T]) Collection() api.Collection { return api.Collection{Resource: c.set.resource} }

// Selects reports whether a scope can have an object: its namespace fits, and its source does not say that the object
// is of another shard. Selectors are not compared. Package cachedclient uses it.
func (c collection[T]) Selects(object T) bool {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	for _, m := range c.set.members {
		if namespace := m.scope.Source.Collection().Namespace; namespace != "" && namespace != object.GetNamespace() {
			continue
		}
		if m.sharded == nil || m.sharded.Selects(object) {
			return true
		}
	}
	return false
}

// SelectorsIn returns the selector of each present scope that can have objects of a namespace. The cache may not have
// these objects yet. Package cachedclient uses it.
func (c collection[T]) SelectorsIn(namespace string) []api.Selector {
	return c.set.queue.Selectors(namespace)
}

// Shard reports whether the server or the client drops the objects of other shards. It reports the client if the client
// drops those of at least one scope.
func (c collection[T]) Shard() (all informer.ShardStatus) {
	_, dropped := c.set.past()
	for _, m := range c.set.current() {
		s := m.shard()
		dropped += s.Dropped
		if all.By == "" || all.Reason == nil && s.Reason != nil {
			all = s
		}
	}
	all.Dropped = dropped
	return all
}

// List implements api.ListerWatcher. It fails.
func (c collection[T]) List(context.Context, api.Options[T], func(T) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{}, errNoRequest
}

// Watch implements api.ListerWatcher. It fails.
func (c collection[T]) Watch(context.Context, api.Options[T]) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) { yield(api.Event[T]{}, errNoRequest) }
}
