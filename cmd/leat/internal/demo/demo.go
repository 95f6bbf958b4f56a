package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

// Options are the flags of leat demo.
type Options struct {
	KeepRunning bool
	Metrics     string // address of the metrics; empty for none
	Page        string // address of the live page; empty for none
	Record      string // file of the recording; empty for none
}

// Run runs the demonstration. With a page or with KeepRunning, it ends with ctx.
func Run(ctx context.Context, stdout io.Writer, o Options) error {
	metrics, err := endpoint.NewMetrics(o.Metrics)
	if err != nil {
		return err
	}
	page, err := endpoint.NewPage(o.Page, livepage.Options{Program: "leat demo"})
	if err != nil {
		return err
	}
	tape, err := newTape(o.Record)
	if err != nil {
		return err
	}
	_, _ = io.WriteString(stdout, metrics.Where()+page.Where()) // the demo runs without these lines too
	return metrics.During(ctx, func(ctx context.Context) error {
		return page.During(ctx, func(ctx context.Context) error {
			return tape.during(ctx, func(ctx context.Context) error {
				return runDemo(ctx, stdout, o.KeepRunning, metrics, page, tape)
			})
		})
	})
}

// demo is the demonstration: a server, two informers and a controller.
type demo struct {
	out     *trace.Printer
	metrics *endpoint.Metrics
	server  *testserver.Server
	client  *apiclient.Client
	sets    *trace.Informer[*replicaSet]
	pods    *trace.Informer[*pod]
	byOwner podIndex
	work    func(context.Context) error // runs the controller, or the replicas of it
	stats   func() controller.Stats     // of the controller that works

	// The Lab of the live page changes these.
	steps                  *stepper // nil without a page, as the two below
	setBatches, podBatches *batches
	mood                   atomic.Pointer[string]
	every                  atomic.Int64  // nanoseconds between two changes of the traffic; zero means no traffic
	paced                  chan struct{} // gets a value when every has changed
}

// runDemo starts the server, the informers and the controller, plays the script, and stops them.
func runDemo(ctx context.Context, stdout io.Writer, keepRunning bool, metrics *endpoint.Metrics, page *endpoint.Page, tape *tape) error {
	screen := &mutable{w: stdout}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var steps *stepper
	if page != nil {
		steps = newStepper(ctx.Done())
	}
	running, ctx := errgroup.WithContext(ctx)
	d, err := newDemoWorld(trace.To(screen, nil), metrics, steps, tape)
	if err != nil {
		return err
	}
	if page != nil {
		active := faultplan.NewActive(d.server, 1)
		defer active.Close()
		page.Show(d.sets, d.pods)
		page.ShowHeld(steps.waiting)
		replicas := newCandidates(d, page)
		d.work, d.stats = replicas.run, replicas.stats
		page.Offer(d.actions(active, replicas)...)
		walk := newWalk(page, steps)
		page.Guide(walk.walkthrough())
		running.Go(func() error { return walk.run(ctx) })
	} else if err := d.workAlone(); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // the server ends last
	defer stop()
	served := make(chan error, 1)
	go func() { served <- d.server.Run(serving) }()
	running.Go(func() error { return d.sets.Run(ctx) })
	running.Go(func() error { return d.pods.Run(ctx) })
	running.Go(func() error { return d.work(ctx) })

	started := time.Now()
	err = d.play(ctx)
	if err == nil {
		d.summary(time.Since(started))
		switch {
		case page != nil:
			d.out.Printf("still running, with a change now and then: %s", page.Where())
			screen.mute()
			err = d.traffic(ctx)
		case keepRunning:
			err = d.stay(ctx)
		}
	}
	cancel()
	if errors.Is(err, context.Canceled) {
		err = nil // the context has ended
	}
	err = errors.Join(err, running.Wait())
	stop()
	return errors.Join(err, <-served)
}

func newDemoWorld(out *trace.Printer, metrics *endpoint.Metrics, steps *stepper, tape *tape) (*demo, error) {
	d := &demo{out: out, metrics: metrics, steps: steps, paced: make(chan struct{}, 1), server: testserver.New(testserver.Options{ImmediateDeletion: true})}
	d.setTraffic(calmTraffic)
	var err error
	d.client, err = apiclient.New(apiclient.Config{
		Host: d.server.URL(), Transport: tape.wrap(d.server.Client().Transport), OnRequest: metrics.OnRequest(),
	})
	if err != nil {
		return nil, err
	}
	d.setBatches, d.podBatches = newBatches(steps), newBatches(steps)
	d.sets = watchTraced[*replicaSet](d, replicaSets, d.setBatches)
	d.pods = watchTraced[*pod](d, pods, d.podBatches)
	d.byOwner = podsByOwner(d.pods)
	return d, errors.Join(metrics.Informer(d.sets), metrics.Informer(d.pods))
}

// workAlone makes the controller work without a lease.
func (d *demo) workAlone() error {
	c := newReplicas(d, "replicas", nil)
	d.work, d.stats = c.Run, c.Stats
	_, err := d.metrics.Controller(c)
	return err
}

// watchTraced returns an informer of one resource. Each stage of its pipeline prints a line for what it does.
func watchTraced[T api.Object](d *demo, r api.Resource, held *batches) *trace.Informer[T] {
	source := stepped(d.steps, api.ListerWatcher[T](apiclient.NewPartial[T](d.client, r, "")))
	i := trace.NewInformer(d.out, source, informer.Options[T]{
		Tuning:   reflector.Tuning{BackoffBase: 100 * time.Millisecond}, // short, because a reader waits
		Handling: informer.Handling{StuckAfter: stuckAfter},
	})
	i.Trace(held.trace("the batch of "+r.Plural, i.ResourceVersion))
	return i
}

// idle reports whether all work is done.
func (d *demo) idle() bool {
	pending := 0
	for _, h := range append(d.sets.Status().Handlers, d.pods.Status().Handlers...) {
		pending += h.Pending
	}
	queue := d.stats().Queue
	return pending+queue.Depth+queue.Delayed+queue.Processing == 0
}

// step is one event of the demonstration, and the condition that must follow.
type step struct {
	title string
	do    func(context.Context) error
	until func() bool
}

// play plays the steps of the script. Each step begins when the condition of the one before is met.
func (d *demo) play(ctx context.Context) error {
	if err := d.await(ctx, func() bool { return runstate.IsClosed(d.sets.Synced()) && runstate.IsClosed(d.pods.Synced()) }); err != nil {
		return err
	}
	for n, s := range d.script() {
		d.out.Printf("\n%d. %s\n", n+1, s.title)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("step %d: %w", n+1, err)
		}
		if err := d.await(ctx, s.until); err != nil {
			return fmt.Errorf("step %d: %w", n+1, err)
		}
	}
	return nil
}

// await waits until a condition on the caches is met and all work is done. No event tells the end of all work, so await
// polls for it.
func (d *demo) await(ctx context.Context, met func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("what should have happened has not, in 30 seconds"))
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !met() || !d.idle() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// script returns the steps of the demonstration.
func (d *demo) script() []step {
	web := api.Key{Namespace: "default", Name: "web"}
	sets := apiclient.NewPartial[*replicaSet](d.client, replicaSets, web.Namespace)
	scale := func(ctx context.Context, n int) error {
		patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"replicas": n}})
		if err == nil {
			_, err = sets.Patch(ctx, web, patch, apiclient.PatchOptions{})
		}
		return err
	}
	settled := func(n int) func() bool {
		return func() bool {
			set, ok := d.sets.Cache().Get(web)
			return ok && set.Spec.Replicas == n && set.Status.ReadyReplicas == n && d.pods.Cache().Len() == n
		}
	}
	first := api.Key{Namespace: web.Namespace, Name: "web-0"}
	var was types.UID
	remember := func() {
		if p, ok := d.pods.Cache().Get(first); ok {
			was = p.UID
		}
	}
	renewed := func() bool {
		p, ok := d.pods.Cache().Get(first)
		return ok && p.UID != was
	}
	return []step{
		{"Somebody creates a ReplicaSet with two replicas. The controller makes the pods.", func(ctx context.Context) error {
			_, err := apiclient.NewTyped[*unstructured.Unstructured](d.client, replicaSets, web.Namespace).
				Create(ctx, newReplicaSet(web, 2), metav1.CreateOptions{})
			return err
		}, settled(2)},
		{"Somebody scales it to three.", func(ctx context.Context) error { return scale(ctx, 3) }, settled(3)},
		{"A pod is deleted. Its owner is reconciled, and makes another of the same name.", func(ctx context.Context) error {
			remember()
			return apiclient.NewPartial[*pod](d.client, pods, web.Namespace).Delete(ctx, first, metav1.DeleteOptions{})
		}, func() bool { return settled(3)() && renewed() }},
		{"The server cuts every connection. The watches go on from where they were: nothing is listed again, nothing is lost.", func(ctx context.Context) error {
			d.server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
			return scale(ctx, 1)
		}, settled(1)},
		{"The connections are gone for a while. A pod is deleted, and the history with it. A list finds out, and tells what changed.", func(context.Context) error {
			remember()
			outage := d.server.Inject(faults.Fault{Effect: faults.Outage{}})
			defer outage.Remove()
			if err := d.server.Delete(pods, first); err != nil {
				return err
			}
			d.server.Inject(faults.Fault{Effect: faults.Compact{}})
			return nil
		}, func() bool { return settled(1)() && renewed() }},
		{"The ReplicaSet is deleted. Its pod goes too.", func(ctx context.Context) error {
			return sets.Delete(ctx, web, metav1.DeleteOptions{})
		}, func() bool { return d.sets.Cache().Len() == 0 && d.pods.Cache().Len() == 0 }},
	}
}

// summary prints the numbers of events, requests and reconciles.
func (d *demo) summary(took time.Duration) {
	sets, pods := d.sets.Status().Reflector.Counters, d.pods.Status().Reflector.Counters
	d.out.Printf("\n%d events in %d watches and %d lists, %d reconciles, in %s. Now read README.md, or try: leat serve\n",
		sets.Events+pods.Events, sets.Watches+sets.WatchLists+pods.Watches+pods.WatchLists, sets.Lists+pods.Lists,
		d.stats().Reconciles, took.Round(time.Millisecond))
}

// stay serves the same API on a local port until ctx ends.
func (d *demo) stay(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.out.Printf("still running; in another terminal: leat watch pods -A --server http://%s\n", listener.Addr())
	return d.server.Serve(ctx, listener)
}
