package collect

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// watched is one resource that the collector follows. It is a controller.Source that runs its own informer, so that
// removing the source ends the informer.
type watched struct {
	*Collector
	resource     api.Resource
	client       *apiclient.PartialClient[*item]
	informer     *informer.Informer[*item]
	byOwner      *cache.Index[*item, types.UID]
	registration *controller.SourceRegistration
}

func (c *Collector) newWatched(r api.Resource) *watched {
	w := &watched{Collector: c, resource: r, client: apiclient.NewPartial[*item](c.client, r, "")}
	w.informer = informer.New(w.client, informer.Options[*item]{Logger: c.options.Controller.Logger})
	w.byOwner = informer.AddIndex(w.informer, ownersOf)
	return w
}

// String returns the name of the resource.
func (w *watched) String() string { return w.resource.String() }

// NotSynced returns the error of the informer's last list.
func (w *watched) NotSynced() error { return w.informer.Status().Reflector.LastError }

// Run runs the informer, and adds the objects that its changes concern.
func (w *watched) Run(ctx context.Context, sink *controller.Sink[id]) error {
	registration, err := w.informer.Subscribe(func(n api.Change[*item]) { w.changed(n, sink) }, informer.HandlerOptions{Name: "garbage collector"})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- w.informer.Run(ctx) }()
	select {
	case <-registration.Synced():
		sink.Synced()
	case <-registration.Done():
	}
	err = <-ended
	<-registration.Done()
	return err
}

func (w *watched) id(o *item) id { return id{w.resource.GroupResource(), api.KeyOf(o)} }

// changed adds the object itself if there may be something to do, and the objects whose decision depends on it.
func (w *watched) changed(n api.Change[*item], sink *controller.Sink[id]) {
	add := func(i id) { sink.Add(i, workqueue.Item{}) }
	if w.resource.GroupResource() == definitions {
		w.look()
	}
	o := n.Object
	if n.Type == api.Updated {
		for _, owner := range w.waitingOwners(n.Old) {
			add(owner)
		}
	}
	if n.Type == api.Deleted {
		for _, owner := range w.waitingOwners(o) {
			add(owner)
		}
	} else if o.foreground() || o.orphaning() || !o.deleting() && w.unsettled(o) {
		add(w.id(o))
	}
	if n.Type == api.Deleted {
		w.gone.add(w.referenceTo(o))
	}
	if n.Type == api.Deleted || o.foreground() && (n.Type == api.Added || !n.Old.foreground()) {
		for dependent, d := range w.dependents(o.GetUID()) {
			add(dependent.id(d))
		}
	}
}

// waitingOwners returns the cached owners of an object that wait for their dependents.
func (w *watched) waitingOwners(o *item) []id {
	var out []id
	for i := range o.Metadata.OwnerReferences {
		if owner, from := w.cachedOwner(o, i); owner != nil && owner.foreground() {
			out = append(out, from.id(owner))
		}
	}
	return out
}

// unsettled reports whether an object has an owner that the caches do not show. A new dependent of an owner that waits
// for others does not count: kube-controller-manager deletes it when it looks at the owner again.
func (w *watched) unsettled(o *item) bool {
	for i := range o.Metadata.OwnerReferences {
		if owner, from := w.cachedOwner(o, i); owner == nil || from.resource.GroupVersion().String() != o.Metadata.OwnerReferences[i].APIVersion {
			return true
		}
	}
	return false
}

// cachedOwner returns an owner of an object if a cache has it, and the resource that the cache belongs to.
func (c *Collector) cachedOwner(o *item, reference int) (*item, *watched) {
	r := o.Metadata.OwnerReferences[reference]
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return nil, nil
	}
	w := c.ofKind(schema.GroupKind{Group: gv.Group, Kind: r.Kind})
	if w == nil {
		return nil, nil
	}
	owner, found := w.informer.Cache().Get(w.keyOfOwner(o, r.Name))
	if !found || owner.GetUID() != r.UID {
		return nil, nil
	}
	return owner, w
}

// referenceTo returns what refers to an object of this resource.
func (w *watched) referenceTo(o *item) reference {
	return reference{w.resource.GroupVersion().String(), w.resource.Kind, o.GetNamespace(), o.GetName(), o.GetUID()}
}

// keyOfOwner returns the key that an owner of this resource has.
func (w *watched) keyOfOwner(o *item, name string) api.Key { return ownerKey(w.resource, o, name) }

func ownerKey(r api.Resource, o *item, name string) api.Key {
	key := api.Key{Name: name}
	if r.Namespaced {
		key.Namespace = o.GetNamespace()
	}
	return key
}

// dependents yields the cached objects that name an owner.
func (c *Collector) dependents(owner types.UID) iter.Seq2[*watched, *item] {
	return func(yield func(*watched, *item) bool) {
		for _, w := range c.all() {
			for _, o := range w.byOwner.ByIndex(owner) {
				if !yield(w, o) {
					return
				}
			}
		}
	}
}

// ofKind returns the resource of a kind, or nil if the collector does not follow it.
func (c *Collector) ofKind(kind schema.GroupKind) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind]
}

// get returns a resource that the collector follows, or nil.
func (c *Collector) get(r schema.GroupResource) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watched {
		if w.resource.GroupResource() == r {
			return w
		}
	}
	return nil
}

// all returns the resources that the collector follows, in the order of the server's documents.
func (c *Collector) all() []*watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched
}
