package referenced

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// defaultMaxFetches is Options.MaxFetches if it is 0.
const defaultMaxFetches = 16

// Options are the options of a Set. Those of the informer that are about requests apply to the metadata, and Handling
// applies to the whole objects. Transform is called with whole objects, on several goroutines. Hold must be nil.
// OnError also gets the errors of requests for single objects, except NotFound. BackoffBase and BackoffMax bound the
// pauses between these requests too.
type Options[T api.Object] struct {
	informer.Options[T]
	// MaxFetches is the largest number of objects that are requested at once. 0 means 16.
	MaxFetches int
}

// Metadata is what a Set has of every object.
type Metadata struct {
	Meta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
}

// Meta are the members of the metadata that a Set keeps.
type Meta struct {
	Name            string            `json:"name" protobuf:"bytes,1,opt,name=name"`
	Namespace       string            `json:"namespace" protobuf:"bytes,3,opt,name=namespace"`
	UID             types.UID         `json:"uid" protobuf:"bytes,5,opt,name=uid"`
	ResourceVersion string            `json:"resourceVersion" protobuf:"bytes,6,opt,name=resourceVersion"`
	Labels          map[string]string `json:"labels" protobuf:"bytes,11,rep,name=labels"`
}

// GetNamespace implements api.Object.
func (m *Meta) GetNamespace() string { return m.Namespace }

// GetName implements api.Object.
func (m *Meta) GetName() string { return m.Name }

// GetUID implements api.Object.
func (m *Meta) GetUID() types.UID { return m.UID }

// GetResourceVersion implements api.Object.
func (m *Meta) GetResourceVersion() string { return m.ResourceVersion }

// Set is an informer of the objects that others refer to. Its field Informer is for caches, clients and controllers;
// Status describes the metadata and shows requests that fail.
type Set[T api.Object] struct {
	*informer.Informer[T]
	client   *apiclient.PartialClient[T]
	o        Options[T]
	metadata *informer.Informer[*Metadata]
	changed  []api.Key  // referenced objects that the batch of metadata in progress changes
	onError  sync.Mutex // held while OnError runs
	active   sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	log       *zap.Logger
	state     runstate.State
	request   func(*entry[T]) // starts a request; nil before Run
	referrers []func(api.Key) bool
	followed  []informer.Registration
	entries   map[api.Key]*entry[T]
	late      map[*entry[T]]struct{} // those that are not as the metadata are
	waiting   []*entry[T]            // for a request
	fetching  int                    // requests in flight
	reached   string                 // version of the metadata in the entries
	listed    bool                   // the metadata and the references have their first lists
	complete  bool                   // the first state of the set is in the queue

	queue *deltafifo.DeltaFIFO[T]
	txn   deltafifo.Txn[T] // of the goroutine that holds mu
	// version is the version of the next batch. mu and a transaction guard its changes.
	version string
}

// New returns a Set that reads with a client of package apiclient: NewPartial, or the PartialClient in a TypedClient.
// Without Follow, no object is referenced. New panics if the client is nil, or if Options.Hold is set.
func New[T api.Object](client *apiclient.PartialClient[T], o Options[T]) *Set[T] {
	if client == nil {
		panic("referenced: the client is nil")
	}
	if o.Hold != nil {
		panic("referenced: Options.Hold has no effect, because few objects are held; leave it nil")
	}
	if o.MaxFetches <= 0 {
		o.MaxFetches = defaultMaxFetches
	}
	s := &Set[T]{client: client, o: o, log: cmp.Or(o.Logger, zap.NewNop()), entries: map[api.Key]*entry[T]{}, late: map[*entry[T]]struct{}{}}
	of := informer.Options[*Metadata]{
		Selector: o.Selector, Gate: o.Gate, Check: o.Check, Logger: o.Logger, Memory: o.Memory, Hooks: o.Hooks, Tuning: o.Tuning,
	}
	of.KeepManagedFields = false // Metadata does not declare them
	of.OnError = s.report
	s.metadata = informer.New(
		apiclient.NewPartial[*Metadata](client.Client(), client.Resource(), client.Namespace()), of)
	s.metadata.Trace(informer.Trace{
		Wanted: s.has,
		Change: func(c informer.TracedChange) { s.changed = append(s.changed, api.KeyOf(c.Object)) },
		Batch:  func(informer.TracedBatch) { s.observe() },
	})
	s.Informer = informer.Compose(source[T]{api.Wrapper[T]{ListerWatcher: client}, s}, o.Options,
		func(q *deltafifo.DeltaFIFO[T], _ reflector.Options[T]) informer.Feed {
			s.queue = q
			q.Annotate(func() (string, any) { return s.version, nil })
			return feed[T]{s}
		})
	return s
}

// source is the ListerWatcher of the informer. The informer reads only its description.
type source[T api.Object] struct {
	api.Wrapper[T]
	set *Set[T]
}

// Await implements an interface of package cachedclient, which calls it for an object that the cache lacks.
func (s source[T]) Await(ctx context.Context, key api.Key) error {
	_, err := s.set.Get(ctx, key)
	return err
}

// Metadata returns the informer of the metadata of all objects. The Set runs it.
func (s *Set[T]) Metadata() *informer.Informer[*Metadata] { return s.metadata }

// Follow makes the set cache the objects that the objects of another informer refer to. references returns their keys;
// the key of a cluster-scoped object has no namespace. It must return at once, and depend on its argument alone. It is
// the function of an index of the other informer, which Follow returns: the index finds the objects that refer to a
// key. Several informers may be followed, also the informer of the set itself. Its handlers must be told of every
// removal: if package scopes removes a scope silently, the references of its objects stay. Follow must be called before
// Run, otherwise it returns informer.ErrRunning.
func Follow[T, O api.Object](s *Set[T], referrers *informer.Informer[O], references func(O) []api.Key) (*cache.Index[O, api.Key], error) {
	s.mu.Lock()
	created := s.state == runstate.Created
	s.mu.Unlock()
	if !created {
		return nil, fmt.Errorf("referenced: follow %s: %w", referrers.Resource(), informer.ErrRunning)
	}
	index := informer.AddIndex(referrers, references)
	s.mu.Lock()
	s.referrers = append(s.referrers, func(key api.Key) bool { return index.Len(key) > 0 })
	s.mu.Unlock()
	r, err := referrers.Subscribe(func(c api.Change[O]) {
		switch c.Type {
		case api.Updated:
			s.recheck(references(c.Old))
		case api.Deleted:
			// Object may be a later state than the cached one, with other references. So all entries are checked.
			s.recheck(s.keys())
		}
		s.recheck(references(c.Object))
	}, informer.HandlerOptions{Name: "references to " + s.Resource().String(), ResyncPeriod: -1, NonBlocking: true})
	if err != nil {
		return nil, fmt.Errorf("referenced: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed = append(s.followed, r)
	return index, nil
}

// NotReferencedError is the error of a read of an object that is not cached, because no object refers to it.
type NotReferencedError struct {
	Resource api.Resource
	Key      api.Key
}

// Error names the object and the reason.
func (e *NotReferencedError) Error() string {
	return fmt.Sprintf("referenced: %s %s is not cached: no object refers to it", e.Resource, api.FormatKey(e.Key))
}

// Get returns a cached object, which must not be changed. It blocks until the set is synced, and until an object that
// was just referenced is fetched or a request for it has failed. The error is a *NotReferencedError, apimachinery's
// NotFound if the object does not exist, or wraps the error of the last request or of ctx. To read the cache without a
// wait, use Cache.
func (s *Set[T]) Get(ctx context.Context, key api.Key) (T, error) {
	object, found := s.Snapshot().Get(key)
	if found {
		return object, nil
	}
	if !s.has(key) && s.isReferenced(key) { // the handler of a referrer is late
		s.recheck([]api.Key{key})
	}
	var why error
	err := s.WaitUntil(ctx, func(now *cache.Snapshot[T]) bool {
		var answered bool
		object, found = now.Get(key)
		why, answered = s.why(key)
		return found || answered
	})
	switch {
	case err != nil:
		return object, s.notFetched(key, err)
	case !found:
		return object, why
	}
	return object, nil
}

func (s *Set[T]) notFetched(key api.Key, err error) error {
	return fmt.Errorf("referenced: %s %s is not fetched: %w", s.Resource(), api.FormatKey(key), err)
}

// why returns why the cache lacks an object. It returns false if the object will be in the cache, or may be.
func (s *Set[T]) why(key api.Key) (error, bool) {
	if !runstate.IsClosed(s.Synced()) {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := s.entries[key]; {
	case e == nil:
		return &NotReferencedError{s.Resource(), key}, true
	case e.have != identity{}:
		return nil, false
	case e.meta == identity{}:
		return apierrors.NewNotFound(s.Resource().GroupResource(), key.Name), true
	default:
		return s.notFetched(key, e.err), e.err != nil
	}
}

// WaitFor blocks until the set has reached a version: the metadata have, and each referenced object that changed up to
// it was fetched. It also waits for the objects that are referenced now and were never fetched, unless a request for
// them failed. It returns the error of ctx, or informer.ErrStopped. "0" means any version.
func (s *Set[T]) WaitFor(ctx context.Context, version string) error {
	s.mu.Lock()
	var fresh []*entry[T]
	for e := range s.late {
		if e.isFresh() {
			fresh = append(fresh, e)
		}
	}
	s.mu.Unlock()
	return s.WaitUntil(ctx, func(now *cache.Snapshot[T]) bool {
		order, ordered := api.CompareVersions(now.ResourceVersion(), version)
		if !runstate.IsClosed(s.Synced()) || version != "0" && (!ordered || order < 0) {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(fresh, func(e *entry[T]) bool {
			_, cached := now.Get(e.key)
			return e.isFresh() || !cached && e.have != identity{}
		})
	})
}

// has reports whether an object is referenced.
func (s *Set[T]) has(key api.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[key] != nil
}

// begin locks the set and opens a transaction of its queue. commit ends both.
func (s *Set[T]) begin() {
	s.mu.Lock()
	s.txn = s.queue.Begin()
}

func (s *Set[T]) commit() {
	s.advance()
	s.txn.Commit()
	s.send()
	s.mu.Unlock()
}
