package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/reconcile/events"
)

// Options are the options of a Collector. The zero value is a good default.
type Options struct {
	// Interval is the time between two looks at the resources of the server. A change of a CustomResourceDefinition
	// causes a look at once. Zero means 30 seconds.
	Interval time.Duration
	// Controller are the options of the controller. The default is one worker, so that deletions have an order.
	Controller controller.Options
}

// Collector is a garbage collector.
type Collector struct {
	client     *apiclient.Client
	options    Options
	mapper     *discovery.Mapper
	gone       recent[reference]
	reported   recent[reference] // to owners in other namespaces, about which there is an Event
	controller *controller.Controller[id]
	events     *events.Recorder
	looks      chan struct{} // has an element if the resources of the server may have changed

	mu      sync.Mutex // guards the fields below
	watched []*watched
	kinds   map[schema.GroupKind]*watched
}

// New returns a collector of the objects that a client reaches.
func New(client *apiclient.Client, o Options) *Collector {
	if o.Interval == 0 {
		o.Interval = 30 * time.Second
	}
	c := &Collector{
		client: client, options: o, looks: make(chan struct{}, 1),
		mapper: discovery.New(client, discovery.Options{RefreshInterval: -1}),
	}
	c.controller = controller.New("garbagecollector", controller.Func[id](c.reconcile), o.Controller)
	return c
}

// Run collects until ctx ends. It returns nil after its goroutines have ended, and an error if the server does not tell
// its resources at the start. It runs once.
func (c *Collector) Run(ctx context.Context) error {
	var err error
	c.events, err = events.New(c.client, events.Options{
		Controller: "garbage-collector-controller", Instance: "kube-controller-manager", CoreV1: true,
	})
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	if err := c.discover(ctx, true); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("collect: %w", err)
	}
	c.controller.Watch(controller.SourceFunc("resources", c.lookAgain))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return c.events.Run(ctx) })
	all.Go(func() error { return c.controller.Run(ctx) })
	return all.Wait()
}

// look causes a look at the resources of the server.
func (c *Collector) look() {
	select {
	case c.looks <- struct{}{}:
	default:
	}
}

// lookAgain looks at the resources of the server from time to time, and after a change of the definitions. A look that
// fails is repeated at the next time.
func (c *Collector) lookAgain(ctx context.Context, _ *controller.Sink[id]) error {
	ticker := time.NewTicker(c.options.Interval)
	defer ticker.Stop()
	for {
		drop := false
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			drop = true
		case <-c.looks:
		}
		if err := c.discover(ctx, drop); err != nil && ctx.Err() == nil && c.options.Controller.Logger != nil {
			c.options.Controller.Logger.Sugar().Warnf("collect: %v", err)
		}
	}
}

// ignored are not collected: they are too many, and the server deletes them by itself.
var ignored = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// discover reads which resources the server has, and follows those whose objects can be deleted. It stops following
// others only if drop is set: after a change of the definitions, the events of the last objects may still be on the
// way.
func (c *Collector) discover(ctx context.Context, drop bool) error {
	var incomplete *discovery.IncompleteError // a group of an APIService may be unavailable: the others go on
	if err := c.mapper.Refresh(ctx); err != nil && !errors.As(err, &incomplete) {
		return err
	}
	found, err := c.mapper.All(ctx)
	if err != nil && !errors.As(err, &incomplete) {
		return err
	}
	drop = drop && incomplete == nil
	wanted := map[api.Resource]bool{}
	var order []api.Resource
	for _, r := range found {
		if r.Preferred && r.Can("delete", "list", "watch") && !slices.Contains(ignored, r.GroupResource()) {
			wanted[r.Resource] = true
			order = append(order, r.Resource)
		}
	}
	var added, removed []*watched
	c.mu.Lock()
	have := map[api.Resource]*watched{}
	for _, w := range c.watched {
		have[w.resource] = w
		switch {
		case wanted[w.resource]:
		case drop:
			removed = append(removed, w)
		default:
			order = append(order, w.resource)
		}
	}
	c.watched, c.kinds = nil, map[schema.GroupKind]*watched{}
	for _, r := range order {
		w := have[r]
		if w == nil {
			w = c.newWatched(r)
			added = append(added, w)
		}
		c.watched = append(c.watched, w)
		c.kinds[r.GroupVersionKind().GroupKind()] = w
	}
	c.mu.Unlock()
	for _, w := range removed {
		w.registration.Remove()
	}
	for _, w := range added {
		w.registration = c.controller.Watch(w)
	}
	return nil
}
