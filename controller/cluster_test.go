package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// thing is an object of any kind.
type thing struct {
	metav1.ObjectMeta
	Spec string
}

var (
	owners = api.Resource{Group: "apps", Version: "v1", Kind: "Owner", Plural: "owners", Namespaced: true}
	things = api.Resource{Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true}
)

// cluster numbers the writes to all of its collections, as an API server does.
type cluster struct {
	mu      sync.Mutex // guards the fields below, and those of the collections
	version int
	uids    int
}

// collection is the part of an API server that serves one resource: a ListerWatcher with methods that write.
type collection struct {
	*cluster
	resource api.Resource
	objects  map[api.Key]*thing
	events   []api.Event[*thing]
	oldest   int           // watches from an earlier version get status 410
	failure  error         // if not nil, every request fails with it
	changed  chan struct{} // closed and replaced whenever a watch has something to send
	cuts     int           // how often all watches were ended
}

func (c *cluster) collection(r api.Resource) *collection {
	return &collection{cluster: c, resource: r, objects: map[api.Key]*thing{}, changed: make(chan struct{})}
}

func (c *collection) Collection() api.Collection { return api.Collection{Resource: c.resource} }

func (c *collection) List(_ context.Context, _ api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return metav1.ListMeta{}, c.failure
	}
	for _, object := range c.objects {
		decoded := *object // a list of a server makes new objects, too
		if err := each(&decoded); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: strconv.Itoa(c.version)}, nil
}

func (c *collection) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		from, _ := strconv.Atoi(o.ResourceVersion)
		c.mu.Lock()
		cuts := c.cuts
		c.mu.Unlock()
		for {
			events, changed, err := c.since(from, cuts)
			if err != nil && !errors.Is(err, errCut) {
				yield(api.Event[*thing]{}, err)
			}
			if err != nil {
				return
			}
			for _, event := range events {
				from, _ = strconv.Atoi(event.ResourceVersion)
				if !yield(event, nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

var errCut = errors.New("the watch was cut")

// since returns the events after a version, and a channel to wait on after they have been sent.
func (c *collection) since(version, cuts int) ([]api.Event[*thing], <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failure != nil:
		return nil, nil, c.failure
	case c.cuts != cuts:
		return nil, nil, errCut
	case version < c.oldest:
		return nil, nil, apierrors.NewResourceExpired("too old resource version")
	}
	var events []api.Event[*thing]
	for _, event := range c.events {
		if at, _ := strconv.Atoi(event.ResourceVersion); at > version {
			events = append(events, event)
		}
	}
	return events, c.changed, nil
}

func (c *collection) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *collection) record(kind watch.EventType, object *thing) {
	c.version++
	object.ResourceVersion = strconv.Itoa(c.version)
	c.events = append(c.events, api.Event[*thing]{Type: kind, Object: object, ResourceVersion: object.ResourceVersion})
	c.wake()
}

// apply creates or replaces an object. A new object gets a UID unless it has one.
func (c *collection) apply(object *thing) *thing {
	c.mu.Lock()
	defer c.mu.Unlock()
	object = api.Clone(object)
	old, exists := c.objects[api.KeyOf(object)]
	kind := watch.Modified
	if exists {
		object.UID, object.Generation = old.UID, old.Generation
		if old.Spec != object.Spec {
			object.Generation++
		}
	} else {
		kind = watch.Added
		object.Generation = 1
		if object.UID == "" {
			c.uids++
			object.UID = types.UID(fmt.Sprintf("uid-%d", c.uids))
		}
	}
	c.record(kind, object)
	c.objects[api.KeyOf(object)] = object
	return object
}

// delete deletes an object and reports whether it existed.
func (c *collection) delete(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(name)
	object, exists := c.objects[key]
	if exists {
		delete(c.objects, key)
		c.record(watch.Deleted, api.Clone(object))
	}
	return exists
}

// fail makes every request fail with err and ends all watches. A nil err ends the failure.
func (c *collection) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
	c.wake()
}

// forgetHistory ends all watches, and answers 410 to watches from earlier versions.
func (c *collection) forgetHistory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts++
	c.oldest = c.version
	c.events = nil
	c.wake()
}

func (c *collection) snapshot() map[api.Key]*thing {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[api.Key]*thing, len(c.objects))
	for key, object := range c.objects {
		all[key] = object
	}
	return all
}

// informer makes an informer of the collection and does not run it.
func (c *collection) informer() *informer.Informer[*thing] {
	return informer.New(c, informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}})
}

// running makes an informer of the collection and runs it until the test ends.
func (c *collection) running(t *testing.T) *informer.Informer[*thing] {
	i := c.informer()
	start(t, i.Run)
	return i
}

func keyOf(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

func named(name string) *thing {
	return &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// ownedBy returns a thing whose controller is owner.
func ownedBy(name string, owner *thing) *thing {
	object := named(name)
	object.OwnerReferences = []metav1.OwnerReference{controllerRef(owner)}
	return object
}

func controllerRef(owner *thing) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Owner", Name: owner.Name, UID: owner.UID, Controller: &yes}
}

// start runs a function until the test ends or stop is called. stop returns the result of the function.
func start(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.NoError(t, stop()) })
	return stop
}

// recorder is a reconciler that records its keys.
type recorder struct {
	mu    sync.Mutex // guards the field below
	calls []api.Key
}

func (r *recorder) Reconcile(_ context.Context, key api.Key) (controller.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, key)
	return controller.Result{}, nil
}

// names waits until all goroutines are idle and returns the names that were reconciled since the last call.
func (r *recorder) names() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	names := []string{}
	for _, key := range r.calls {
		names = append(names, key.Name)
	}
	r.calls = nil
	return names
}

// pass lets time pass and then waits until all goroutines are idle. Only the test's goroutine may call it.
func pass(d time.Duration) {
	linger(d)
	synctest.Wait()
}

// linger takes some time.
func linger(d time.Duration) { <-time.After(d) }
