package demo

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/docs"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/testserver"
)

// walk is the life of one Pod, as docs/walkthrough.md tells it, step by step in the Lab. It has a server, an informer
// and a controller of its own, so that versions and lines are those of the text.
type walk struct {
	page  *endpoint.Page
	steps *stepper
	turns chan turn
	notes notes

	mu    sync.Mutex // guards the field below
	world *walkWorld // nil before the first step
}

// turn asks the goroutine of run to end the world, and to begin another one if begin is set.
type turn struct {
	begin bool
	done  chan<- error
}

// walkWorld is what the walkthrough looks at.
type walkWorld struct {
	out        *trace.Printer
	client     *apiclient.Client
	pods       *trace.Informer[*walkedPod]
	held       *batches
	controller *controller.Controller[api.Key]
	reconciled chan struct{} // has a value after a reconcile
}

// walkedPod is what the walkthrough's controller looks at.
type walkedPod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func newWalk(page *endpoint.Page, steps *stepper) *walk {
	return &walk{page: page, steps: steps, turns: make(chan turn)}
}

// run makes the turns until ctx ends.
func (w *walk) run(ctx context.Context) error {
	end := func() error { return nil }
	for {
		select {
		case t := <-w.turns:
			err := end()
			end = func() error { return nil }
			if t.begin && err == nil {
				end, err = w.begin(ctx)
			}
			t.done <- err
		case <-ctx.Done():
			return end()
		}
	}
}

// turn makes a turn, and waits until it is made.
func (w *walk) turn(ctx context.Context, begin bool) error {
	done := make(chan error, 1)
	select {
	case w.turns <- turn{begin, done}:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts a world. The returned function ends it.
func (w *walk) begin(ctx context.Context) (end func() error, err error) {
	server := testserver.New(testserver.Options{ImmediateDeletion: true})
	world := &walkWorld{out: trace.To(&w.notes, nil), held: newBatches(w.steps), reconciled: make(chan struct{}, 1)}
	world.client, err = apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	source := stepped(w.steps, api.ListerWatcher[*walkedPod](apiclient.NewPartial[*walkedPod](world.client, pods, "default")))
	world.pods = trace.NewInformer(world.out, source, informer.Options[*walkedPod]{})
	world.pods.Trace(world.held.trace("the batch of the walkthrough", world.pods.ResourceVersion))
	world.controller = controller.New("walk", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		w.steps.wait(livepage.StageWorkers, "the key "+key.String()+" of the walkthrough", ctx.Done())
		return controller.Result{}, world.reconcile(ctx, key)
	}), controller.Options{})
	world.controller.Watch(controller.For(world.pods).When(hold[*walkedPod](world.held, "pods", ctx.Done())))
	hidePods, _ := w.page.Register("", world.pods) // the errors are always nil
	hideController, _ := w.page.Register("", world.controller)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // the server ends last
	var served, running errgroup.Group
	served.Go(func() error { return server.Run(serving) })
	running.Go(func() error { return world.pods.Run(ctx) })
	running.Go(func() error { return world.controller.Run(ctx) })
	w.set(world)
	return func() error {
		w.set(nil)
		hidePods()
		hideController()
		cancel()
		err := running.Wait()
		stop()
		return errors.Join(err, served.Wait())
	}, nil
}

func (w *walk) set(world *walkWorld) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.world = world
}

func (w *walk) now() (*walkWorld, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.world == nil {
		return nil, errors.New("the walkthrough has not begun")
	}
	return w.world, nil
}

// reconcile prints what the text shows of a reconcile.
func (o *walkWorld) reconcile(ctx context.Context, key api.Key) error {
	for _, cause := range controller.Causes(ctx) {
		o.out.Line("workqueue", key.String(), "because of %s, version %s", cause.Event, cause.Version)
	}
	if pod, ok := o.pods.Cache().Get(key); ok {
		o.out.Line("reconcile", key.String(), "on node %q", pod.Spec.NodeName)
	} else {
		o.out.Line("reconcile", key.String(), "gone")
	}
	select {
	case o.reconciled <- struct{}{}:
	default:
	}
	return nil
}

// walkPatience is how long a step waits for its effect, so that its lines are there when the text comes.
const walkPatience = 10 * time.Second

// awaitEffects does not wait while stages are paused, because the effect comes when somebody lets it.
func (w *walk) awaitEffects(ctx context.Context, effects ...<-chan struct{}) {
	if w.steps.paused() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, walkPatience)
	defer cancel()
	for _, effect := range effects {
		select {
		case <-effect:
		case <-ctx.Done():
		}
	}
}

// walkthrough returns the sections of the text, each with what it does.
func (w *walk) walkthrough() livepage.Walkthrough {
	sections := divide(docs.Walkthrough)
	title := sections[0]
	sections = sections[1:]
	for n := range sections {
		do := w.scene(sections[n].Title)
		sections[n].Do = func(ctx context.Context) error {
			w.notes.turnPage()
			return do(ctx)
		}
	}
	return livepage.Walkthrough{
		Title: title.Title, Text: title.Text, Steps: sections, Printed: w.notes.pages,
		Restart: func(ctx context.Context) error {
			w.notes.clear()
			return w.turn(ctx, false)
		},
	}
}

// divide divides a page at its headings. It drops the pointer to the next page, because links of the Lab lead nowhere.
func divide(page string) (sections []livepage.Step) {
	for part := range strings.SplitSeq("\n"+page, "\n## ") {
		heading, text, _ := strings.Cut(strings.TrimPrefix(part, "\n# "), "\n")
		text, _, _ = strings.Cut(text, "\n\nNext: ")
		sections = append(sections, livepage.Step{Title: heading, Text: strings.TrimSpace(text)})
	}
	return sections
}

// scene returns what a section does.
func (w *walk) scene(heading string) func(context.Context) error {
	key := api.Key{Namespace: "default", Name: "web"}
	change := func(line string, do func(context.Context, *apiclient.TypedClient[*unstructured.Unstructured]) error) func(context.Context) error {
		return func(ctx context.Context) error {
			world, err := w.now()
			if err != nil {
				return err
			}
			world.out.Printf("%s\n", line)
			if err := do(ctx, apiclient.NewTyped[*unstructured.Unstructured](world.client, pods, key.Namespace)); err != nil {
				return err
			}
			w.awaitEffects(ctx, world.reconciled)
			return nil
		}
	}
	switch heading {
	case "Before the Pod":
		return func(ctx context.Context) error {
			if err := w.turn(ctx, true); err != nil {
				return err
			}
			world, err := w.now()
			if err == nil {
				w.awaitEffects(ctx, world.pods.Printed(), world.controller.Synced())
			}
			return err
		}
	case "It is created":
		return change("The Pod is created.", func(ctx context.Context, live *apiclient.TypedClient[*unstructured.Unstructured]) error {
			_, err := live.Create(ctx, newPod(key.Namespace, key.Name), metav1.CreateOptions{})
			return err
		})
	case "It changes":
		return change("The scheduler picks a node for it.", func(ctx context.Context, live *apiclient.TypedClient[*unstructured.Unstructured]) error {
			patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"nodeName": "node-1"}})
			if err == nil {
				_, err = live.Patch(ctx, key, patch, apiclient.PatchOptions{})
			}
			return err
		})
	case "It is gone":
		return change("It is deleted.", func(ctx context.Context, live *apiclient.TypedClient[*unstructured.Unstructured]) error {
			return live.Delete(ctx, key, metav1.DeleteOptions{})
		})
	}
	return func(context.Context) error { return nil }
}

// notes are the lines of a walkthrough, a page for each step.
type notes struct {
	mu      sync.Mutex // guards the field below
	written []*strings.Builder
}

// Write appends to the last page.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.written) == 0 {
		return len(p), nil
	}
	return n.written[len(n.written)-1].Write(p)
}

func (n *notes) turnPage() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = append(n.written, &strings.Builder{})
}

func (n *notes) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = nil
}

func (n *notes) pages() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, b := range n.written {
		all = append(all, b.String())
	}
	return all
}
