package multicluster

import (
	"context"
	"sync"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
)

// kind is Informers of any type.
type kind interface {
	// open makes the informer of a cluster that joins.
	open(c *Cluster) error
	// settle lets readers see the objects of a cluster whose informers are synced. It has no effect if readers see the
	// cluster of a later Secret of the same name, because the end of an earlier one may take long.
	settle(c *Cluster)
	// close forgets a cluster that has left. Readers see its last objects until settle of its successor, or forget.
	close(c *Cluster)
	// forget hides the objects of a member whose Secret does not exist any more.
	forget(m *member)
	// status reports false for a cluster that has left.
	status(c *Cluster) (informer.Status, bool)
}

// Informers are the informers of one resource: one in each cluster of a Set.
type Informers[T api.Object] struct {
	set    *Set
	source func(*Cluster) api.ListerWatcher[T]
	o      informer.Options[T]

	mu      sync.Mutex // guards the fields below
	shares  map[*Cluster]*factory.Share[T]
	visible map[string]visible[T] // by the name of the cluster
}

// visible is the informer that readers of a name get.
type visible[T api.Object] struct {
	share *factory.Share[T]
	of    *member
}

// Inform makes an informer of one resource in every cluster of the set. source returns the objects in one cluster, for
// example apiclient.NewTyped[*corev1.Pod](c.Client(), pods, ""). It must return at once. Callbacks of the options run
// on several goroutines at once, one for each cluster. An error of OnUndecodable ends the informers of that cluster;
// they start again after a minute. Inform panics if the set runs already.
func Inform[T api.Object](s *Set, source func(c *Cluster) api.ListerWatcher[T], o informer.Options[T]) *Informers[T] {
	if source == nil {
		panic("multicluster: Inform needs a source")
	}
	i := &Informers[T]{
		set: s, source: source, o: o, shares: map[*Cluster]*factory.Share[T]{}, visible: map[string]visible[T]{},
	}
	s.addKind(i)
	return i
}

func (i *Informers[T]) open(c *Cluster) error {
	o := i.o
	if i.o.OnUndecodable != nil {
		o.OnUndecodable = func(e *api.UndecodableError) error {
			err := i.o.OnUndecodable(e)
			if err != nil {
				c.fail(err)
			}
			return err
		}
	}
	share, err := factory.Shared(c.informers, i.source(c), o)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shares[c] = share
	return nil
}

func (i *Informers[T]) settle(c *Cluster) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if v, found := i.visible[c.name]; !found || v.of.number <= c.of.number {
		i.visible[c.name] = visible[T]{i.shares[c], c.of}
	}
}

func (i *Informers[T]) close(c *Cluster) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.shares, c)
}

func (i *Informers[T]) forget(m *member) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.visible[m.name].of == m {
		delete(i.visible, m.name)
	}
}

func (i *Informers[T]) status(c *Cluster) (informer.Status, bool) {
	share := i.share(c)
	if share == nil {
		return informer.Status{}, false
	}
	return share.Status(), true
}

func (i *Informers[T]) share(c *Cluster) *factory.Share[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.shares[c]
}

// In returns the informer of a cluster, for readers. It reports false until every informer of the cluster has its first
// list, and after the cluster has left. While the cluster has a successor of the same name that is not synced yet, In
// returns the informer that was stopped, with its last objects. Use For or From to get changes.
func (i *Informers[T]) In(cluster string) (*informer.Informer[T], bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	v, found := i.visible[cluster]
	if !found {
		return nil, false
	}
	return v.share.Informer, true
}

// Get returns a cached object of one cluster; see In. It fits controller.KeyedObjects.
func (i *Informers[T]) Get(key Key) (object T, found bool) {
	inf, ok := i.In(key.Cluster)
	if !ok {
		return object, false
	}
	return inf.Cache().Get(key.Object)
}

// For returns a source that adds the Key of every object that is added, updated or deleted, in all clusters. It is
// controller.For for several clusters; see From.
func For[T api.Object](i *Informers[T]) controller.Source[Key] {
	return From(i, func(c *Cluster, objects controller.Informer[T]) controller.Source[Key] {
		s := controller.For(objects)
		return controller.Keyed(s.Named(c.name+": "+s.String()), c.Key)
	})
}

// From returns a source for a controller of all clusters: the keys of the sources that in returns, one for each
// cluster. in gets an informer that is synced, and must use it for its source: controller.For, Owns or Map, with
// predicates. It must return at once.
//
// When a cluster leaves, each of its objects is a deletion with an unknown final state, so that the controller gets its
// keys once more. When a cluster is replaced by a successor of the same name, that holds for the objects that the
// successor does not have. The source is synced when the set is, so an unreachable cluster does not delay the workers.
func From[T api.Object, K comparable](
	i *Informers[T], in func(c *Cluster, objects controller.Informer[T]) controller.Source[K],
) controller.Source[K] {
	if i == nil || in == nil {
		panic("multicluster: From needs informers and a function")
	}
	return &source[T, K]{informers: i, in: in}
}

// source is the source of a controller: one source for each cluster.
type source[T api.Object, K comparable] struct {
	informers *Informers[T]
	in        func(c *Cluster, objects controller.Informer[T]) controller.Source[K]
}

// String returns the name of the source.
func (s *source[T, K]) String() string { return "clusters" }

// NotSynced returns the reason why the Secrets are not known yet.
func (s *source[T, K]) NotSynced() error { return s.informers.set.NotSynced() }

// Run implements controller.Source. The sources of the clusters begin after the set is synced, because each of them
// says that the sink is synced.
func (s *source[T, K]) Run(ctx context.Context, sink *controller.Sink[K]) error {
	select {
	case <-s.informers.set.Synced():
		sink.Synced()
	case <-ctx.Done():
		return nil
	}
	var active sync.WaitGroup
	defer active.Wait()
	stop := s.informers.set.each(func(m *member) {
		active.Go(func() { s.follow(ctx, m, sink) })
	})
	defer stop()
	<-ctx.Done()
	return nil
}

// follow runs the sources of a cluster and of its successors.
func (s *source[T, K]) follow(ctx context.Context, m *member, sink *controller.Sink[K]) {
	var before *observed[T]
	var last *Cluster
	for {
		c, gone := m.next(ctx, last)
		if c == nil {
			if gone && before != nil {
				before.depart(nil)
			}
			return
		}
		last = c
		objects := &observed[T]{Share: s.informers.share(c), before: before}
		if objects.Share == nil {
			continue // it left a moment ago
		}
		bound, cancel := c.bind(ctx)
		err := s.in(c, objects).Run(bound, sink)
		left := bound.Err() != nil
		cancel()
		if err != nil && !left {
			c.fail(err)
		}
		if len(objects.tell) > 0 {
			before = objects
		}
	}
}

// observed is an informer that remembers the function that gets its changes.
type observed[T api.Object] struct {
	*factory.Share[T]
	before *observed[T] // the predecessor, until its objects have departed
	tell   []func(api.Change[T])
}

// Subscribe implements controller.Informer. The objects of the predecessor depart after the first subscription, because
// f gets the deletion of an object only if the object is in the cache then.
func (o *observed[T]) Subscribe(f func(api.Change[T]), h informer.HandlerOptions) (informer.Registration, error) {
	r, err := o.Share.Subscribe(f, h)
	if err != nil {
		return nil, err
	}
	o.tell = append(o.tell, f)
	if o.before != nil {
		o.before.depart(o.Share)
		o.before = nil
	}
	return r, nil
}

// depart reports the objects as deleted, except those that a successor has. No other call of the functions is in
// flight, because the source has ended.
func (o *observed[T]) depart(successor *factory.Share[T]) {
	for _, object := range o.Cache().List() {
		if successor != nil {
			if _, present := successor.Cache().Get(api.KeyOf(object)); present {
				continue
			}
		}
		for _, f := range o.tell {
			f(api.Change[T]{Type: api.Deleted, FinalStateUnknown: true, Object: object})
		}
	}
}
