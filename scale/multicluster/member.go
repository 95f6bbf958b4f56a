package multicluster

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer/factory"
)

// failurePause is the time before a cluster whose informer has ended with an error gets new informers.
const failurePause = time.Minute

// member is a Secret, and its cluster: none before the first valid kubeconfig, and another one after the Secret names
// another server.
type member struct {
	set    *Set
	name   string
	number int // of the members of the set, in the order in which they joined
	secret api.Key
	log    *zap.Logger
	wake   chan struct{} // has an element if the goroutine of run must look at wanted and removed

	mu      sync.Mutex // guards the fields below
	sum     [sha256.Size]byte
	wanted  *connection // of the newest valid kubeconfig
	invalid error       // why the newest content has no effect
	current *Cluster
	changed chan struct{} // closed and replaced when one of current, removed and ended changes
	removed bool          // the Secret does not exist any more
	ended   bool          // run has returned
}

// update reads the kubeconfig of a Secret. If it has other credentials for the same server, the present client uses
// them from the next request on. If it names another server, run replaces the cluster. Only the handler of the Secrets
// calls update. It parses the kubeconfig without the lock, because Options.Configure may use the set.
func (m *member) update(object *secret) {
	content := object.Data[m.set.o.DataKey]
	sum := sha256.Sum256(content)
	if !m.renews(sum) {
		return
	}
	wanted, err := m.set.connect(m, content)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum = sum
	if m.invalid = err; err != nil {
		m.log.Warn("the Secret has no usable kubeconfig", zap.NamedError("err", err), zap.Bool("previous", m.wanted != nil))
		return
	}
	if m.wanted != nil && m.wanted.sameServer(wanted) {
		if m.wanted.access.renew(wanted.access) {
			m.log.Info("the credentials of the cluster were renewed")
		}
		return
	}
	m.wanted = wanted
	m.poke()
}

// renews reports whether a content is not the present one.
func (m *member) renews(sum [sha256.Size]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sum != m.sum || m.wanted == nil
}

// remove makes the cluster leave.
func (m *member) remove() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed = true
	m.tell()
	m.poke()
}

// poke wakes the goroutine of run.
func (m *member) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// tell wakes the sources. The caller holds the lock.
func (m *member) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// run runs the member's cluster, and its successors, until the Secret disappears or ctx ends.
func (m *member) run(ctx context.Context) {
	var last *Cluster
	for {
		wanted, removed := m.state()
		if last != nil && (ctx.Err() != nil || removed || last.connection != wanted) {
			last.connection.drop()
		}
		switch {
		case ctx.Err() != nil || removed:
			m.end(removed)
			return
		case wanted != nil && (last == nil || last.connection != wanted || last.ended):
			last = m.live(ctx, wanted)
			continue
		}
		select {
		case <-m.wake:
		case <-ctx.Done():
		}
	}
}

func (m *member) state() (wanted *connection, removed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted, m.removed
}

// live runs one cluster until it must be replaced. After a failure it waits before it returns.
func (m *member) live(ctx context.Context, wanted *connection) *Cluster {
	c := m.newCluster(wanted)
	own, leave := context.WithCancel(ctx)
	c.bind = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(own, cancel)
		return ctx, func() { stop(); cancel() }
	}
	m.mu.Lock()
	m.current = c
	m.tell()
	m.mu.Unlock()
	m.log.Info("the cluster joins", zap.String("server", c.Client().Host()))
	var active sync.WaitGroup
	active.Go(func() { _ = c.informers.Run(own) }) // the hook of OnUndecodable has the error
	m.await(own, c)
	leave()
	close(c.left)
	active.Wait()
	for _, k := range m.set.allKinds() {
		k.close(c)
	}
	if c.ended {
		m.pause(ctx)
	}
	return c
}

// await waits until the cluster must end. When its informers hold their first lists, the sources and readers get it.
func (m *member) await(ctx context.Context, c *Cluster) {
	synced := c.informers.Synced()
	for {
		select {
		case <-synced:
			for _, k := range m.set.allKinds() {
				k.settle(c)
			}
			close(c.synced)
			synced = nil
			m.log.Info("the cluster is synced")
		case <-c.failed:
			c.ended = true
			m.log.Warn("an informer of the cluster has failed", zap.NamedError("err", c.failure()), zap.Duration("after", failurePause))
			return
		case <-m.wake:
			if m.superseded(c) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// superseded reports whether the Secret was removed, or names another server.
func (m *member) superseded(c *Cluster) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed || m.wanted != c.connection
}

// pause waits after a failure until the next attempt, or until the Secret changes.
func (m *member) pause(ctx context.Context) {
	timer := time.NewTimer(failurePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.wake:
	case <-ctx.Done():
	}
}

// end tells the sources that there will be no other cluster. If the Secret was removed, readers do not find the objects
// any more; this comes first, because a reconcile that a source causes must not find them.
func (m *member) end(removed bool) {
	if removed {
		for _, k := range m.set.allKinds() {
			k.forget(m)
		}
	}
	m.mu.Lock()
	m.ended = true
	if removed {
		m.current = nil
	}
	m.tell()
	m.mu.Unlock()
	if removed {
		m.log.Info("the cluster has left")
	}
}

// cluster returns the present cluster, or nil.
func (m *member) cluster() *Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// next waits for a synced cluster that is not last. It returns nil if there will be none, or if ctx has ended. gone
// reports that the Secret was removed.
func (m *member) next(ctx context.Context, last *Cluster) (next *Cluster, gone bool) {
	for ctx.Err() == nil {
		m.mu.Lock()
		c, ended, removed, changed := m.current, m.ended, m.removed, m.changed
		m.mu.Unlock()
		if ended {
			return nil, removed
		}
		var synced, left <-chan struct{}
		if c != nil && c != last {
			synced, left = c.synced, c.left
		}
		select {
		case <-synced:
			return c, false
		case <-left:
			last = c
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, false
}

// newCluster returns a cluster with an informer of each resource that does not run yet.
func (m *member) newCluster(wanted *connection) *Cluster {
	c := &Cluster{
		name: m.name, of: m, connection: wanted,
		informers: factory.New(factory.Options{Logger: m.log}),
		synced:    make(chan struct{}), left: make(chan struct{}), failed: make(chan struct{}),
	}
	for _, k := range m.set.allKinds() {
		if err := k.open(c); err != nil {
			c.fail(err)
		}
	}
	return c
}

// Cluster is one cluster of a Set: one server, with the newest credentials for it. When its Secret disappears or names
// another server, the cluster leaves: its informers end, and requests of its client fail with ErrLeft. The set then has
// a new Cluster of this name, or none.
type Cluster struct {
	name       string
	of         *member
	connection *connection
	informers  *factory.Factory
	bind       func(context.Context) (context.Context, context.CancelFunc) // returns a context that also ends when the cluster leaves

	synced chan struct{} // closed when every informer that Inform made has its first list
	left   chan struct{} // closed when the cluster leaves
	failed chan struct{} // closed when an informer has failed
	ended  bool          // because of a failure; belongs to the goroutine of the member

	mu  sync.Mutex // guards the field below
	err error      // of an informer that has failed
}

// Name returns the name of the cluster: that of its Secret, with the namespace if the set reads all namespaces.
func (c *Cluster) Name() string { return c.name }

// Client returns the client of the cluster. It does not change when the credentials do.
func (c *Cluster) Client() *apiclient.Client { return c.connection.client }

// Namespace returns the namespace of the kubeconfig's context, or "default".
func (c *Cluster) Namespace() string { return c.connection.namespace }

// Informers returns the factory whose informers run while the cluster is in the set. Inform makes informers of a
// resource in every cluster; use the factory for a resource of one cluster.
func (c *Cluster) Informers() *factory.Factory { return c.informers }

// Left returns a channel that is closed when the cluster leaves.
func (c *Cluster) Left() <-chan struct{} { return c.left }

// Key returns the key of an object in the cluster.
func (c *Cluster) Key(object api.Key) Key { return Key{Cluster: c.name, Object: object} }

// fail notes the first failure of an informer.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.failed)
	}
}

func (c *Cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Key is the key of an object in one of several clusters.
type Key struct {
	Cluster string
	Object  api.Key
}

// String returns the name of the cluster, and the key of the object.
func (k Key) String() string { return k.Cluster + ": " + api.FormatKey(k.Object) }
