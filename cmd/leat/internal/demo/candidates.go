package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/observe/livepage"
)

// candidates are replicas of the demonstration's controller. They campaign for a lease on the demonstration's server,
// and the one that holds it works. They share the caches, because all of them run in one process.
type candidates struct {
	demo   *demo
	page   *endpoint.Page
	wanted chan struct{} // each value starts a replica

	mu      sync.Mutex // guards the fields below
	started int
	alive   []*candidate
}

// candidate is one life of a replica.
type candidate struct {
	name       string
	controller *controller.Controller[api.Key]
	elector    *leaderelection.Elector
	kill       context.CancelFunc // ends it as SIGKILL does: it does not release its lease
}

// MostCandidates limits what the Lab can start.
const MostCandidates = 5

// The times of the lease are short, because somebody watches.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

func newCandidates(d *demo, page *endpoint.Page) *candidates {
	return &candidates{demo: d, page: page, wanted: make(chan struct{})}
}

// run starts the first replica, and others as they are wanted. It returns when ctx ends and all have ended.
func (c *candidates) run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error {
		c.start(ctx, running)
		for {
			select {
			case <-c.wanted:
				c.start(ctx, running)
			case <-ctx.Done():
				return nil
			}
		}
	})
	return running.Wait()
}

// start starts a replica under a new name.
func (c *candidates) start(ctx context.Context, running *errgroup.Group) {
	c.mu.Lock()
	c.started++
	name := fmt.Sprintf("replica-%d", c.started)
	c.mu.Unlock()
	running.Go(func() error {
		for ctx.Err() == nil {
			// A program ends when it loses its lease, and whoever runs it starts it again.
			if err := c.live(ctx, name); !errors.Is(err, leaderelection.ErrLost) {
				return err
			}
		}
		return nil
	})
}

// live runs a replica until ctx ends, or until it is killed or loses its lease.
func (c *candidates) live(ctx context.Context, name string) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	elector, err := leaderelection.New(c.demo.client, leaderelection.Options{
		Namespace: "default", Name: "leat-demo", Identity: name,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, KeepLease: true,
	})
	if err != nil {
		return err
	}
	title := "replicas" // the first has the name that the metrics have
	if name != "replica-1" {
		title += " of " + name
	}
	me := &candidate{name, newReplicas(c.demo, title, ctx.Done()), elector, kill}
	unmeasure, err := c.demo.metrics.Controller(me.controller)
	if err != nil {
		return err
	}
	defer unmeasure()
	defer c.show(me)()
	ended := make(chan struct{}) // when no worker works any more
	var both errgroup.Group
	both.Go(func() error {
		defer close(ended)
		defer kill()
		return me.controller.RunHeld(ctx, elector.Elected()) // a replica that waits has the keys in its queue
	})
	both.Go(func() error {
		defer kill()
		return elector.Run(ctx, func(leading context.Context) error {
			<-leading.Done()
			kill()
			<-ended
			return nil
		})
	})
	return both.Wait()
}

// show shows a replica on the page until the returned function is called.
func (c *candidates) show(me *candidate) (hide func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = append(c.alive, me)
	hideController, _ := c.page.Register("", me.controller) // the error is always nil
	hideElector, _ := c.page.Register(me.name, me.elector)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.alive = slices.DeleteFunc(c.alive, func(other *candidate) bool { return other == me })
		hideController()
		hideElector()
	}
}

// leader returns the replica that leads, or nil.
func (c *candidates) leader() *candidate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := slices.IndexFunc(c.alive, func(me *candidate) bool { return me.elector.Leading() }); n >= 0 {
		return c.alive[n]
	}
	return nil
}

// stats returns the numbers of the leader's controller.
func (c *candidates) stats() controller.Stats {
	if l := c.leader(); l != nil {
		return l.controller.Stats()
	}
	return controller.Stats{}
}

func (c *candidates) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.alive)
}

func (c *candidates) actions() []livepage.Action {
	const group = "Replicas"
	return []livepage.Action{
		{
			Name: "replica", Group: group, Label: "Another replica", Help: "Starts the controller once more. It has its own queue and campaigns for the lease. It reads the same caches, because all replicas run in this process.",
			Do: func(ctx context.Context, _ values) (string, error) {
				n := c.count()
				if n >= MostCandidates {
					return "", fmt.Errorf("there are %d replicas already", n)
				}
				select {
				case c.wanted <- struct{}{}:
					return fmt.Sprintf("one more than %d", n), nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
		},
		{
			Name: "kill", Group: group, Label: "Kill the leader", Help: "It ends without releasing the lease. Another replica leads when the lease has expired, 3 seconds after the last renewal.",
			Do: func(context.Context, values) (string, error) {
				l := c.leader()
				if l == nil {
					return "", errors.New("no replica leads at the moment")
				}
				l.kill()
				return l.name, nil
			},
		},
	}
}
