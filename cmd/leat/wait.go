package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/cmd/leat/internal/goal"
	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/reconcile/await"
)

// waitOptions are the flags of leat wait.
type waitOptions struct {
	server  kubeconfig.Options
	goal    string
	timeout time.Duration
	all     bool
	selection
}

func newWait() *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:   "wait RESOURCE/NAME... | RESOURCE NAME... | RESOURCE (-l SELECTOR | --field-selector SELECTOR | --all)",
		Short: "Wait until objects exist, are gone, are Ready, or have a field",
		Long: `Wait until objects meet the condition of --for, and print a line for each object:

  create                    the objects exist
  delete                    the objects that exist now are gone; new objects with the same names do not count
  condition=TYPE[=STATUS]   a condition of the status is True, or has the given status, and is not of an older generation
  jsonpath=PATH[=VALUE]     a field exists, or has a value: '{.status.phase}'=Running,
                            '{.status.conditions[?(@.type=="Ready")].reason}'=Completed

Named objects may meet the condition one after the other. The objects of a selector must meet it at one moment, all of
them. An object that is created during the wait counts, and a deleted one does not.

The exit code is 0 if all objects meet the condition, 1 if the time is over or something fails, and 2 if the command line
is wrong.`,
		Example: `  leat wait pods/web --for condition=Ready --timeout 1m
  leat wait deployments.apps web shop --for condition=Available
  leat wait pods -l app=web --for delete
  leat wait jobs/backup --for jsonpath='{.status.succeeded}'=1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	connectFlags(cmd, &o.server)
	o.addFlags(cmd, "select in")
	f := cmd.Flags()
	f.StringVar(&o.goal, "for", "", "what to wait for: create, delete, condition=TYPE[=STATUS] or jsonpath=PATH[=VALUE]")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait; 0 checks once, a negative time waits forever")
	f.BoolVar(&o.all, "all", false, "wait for all objects of the resource in the namespace")
	return cmd
}

func (o waitOptions) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	g, err := goal.Parse(o.goal)
	if err != nil {
		return &usageError{err}
	}
	targets, err := o.targets(args)
	if err != nil {
		return err
	}
	client, namespace, err := connect(ctx, o.server, nil)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	for i := range targets {
		if err := targets[i].find(ctx, client, namespace, o.selection); err != nil {
			return err
		}
	}
	p := newWaitProgress(stderr, g.Name)
	defer p.stop()
	j := waitJob{o: o, client: client, stdout: stdout, progress: p, goal: g}
	if g.Condition != nil {
		return waitForAll(ctx, &j, targets, *g.Condition)
	}
	condition := await.Exists[*metav1.PartialObjectMetadata]()
	if g.Deletion {
		condition = await.Deleted[*metav1.PartialObjectMetadata]("")
	}
	return waitForAll(ctx, &j, targets, condition)
}

// waitTarget is an object. Without a name it is a selection.
type waitTarget struct {
	resource string // as the user wrote it
	found    api.Resource
	key      api.Key
}

// find looks the resource up and sets the namespace.
func (t *waitTarget) find(ctx context.Context, client *apiclient.Client, namespace string, among selection) error {
	var err error
	t.found, err = discovery.Lookup(ctx, client, t.resource)
	t.key.Namespace = among.namespaceOf(t.found, namespace)
	return err
}

// targets parses the arguments: RESOURCE/NAME..., RESOURCE NAME..., or RESOURCE and a selector.
func (o waitOptions) targets(args []string) ([]waitTarget, error) {
	if err := o.checkSelectors(); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, usagef("leat wait needs objects to wait for, such as pods/web, or pods and -l app=web")
	}
	slashes := slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") })
	selecting := o.all || o.labels != "" || o.fields != ""
	switch named := slashes || len(args) > 1; {
	case named && selecting:
		return nil, usagef("names exclude -l, --field-selector and --all")
	case named && o.allNamespaces:
		return nil, usagef("an object has a name in one namespace: names exclude -A")
	case !named && !selecting:
		return nil, usagef("%s alone is not enough: add names, -l, --field-selector or --all", args[0])
	case !named:
		return []waitTarget{{resource: args[0]}}, nil
	}
	var targets []waitTarget
	if !slashes {
		for _, name := range args[1:] {
			targets = append(targets, waitTarget{resource: args[0], key: api.Key{Name: name}})
		}
		return targets, nil
	}
	for _, a := range args {
		resource, name, ok := strings.Cut(a, "/")
		if !ok || resource == "" || name == "" || strings.Contains(name, "/") {
			if len(args) > 1 {
				return nil, usagef("%q is not RESOURCE/NAME like the other arguments", a)
			}
			return nil, usagef("%q is not RESOURCE/NAME", a)
		}
		targets = append(targets, waitTarget{resource: resource, key: api.Key{Name: name}})
	}
	return targets, nil
}

func (o waitOptions) checkSelectors() error {
	if o.all && (o.labels != "" || o.fields != "") {
		return usagef("--all excludes -l and --field-selector")
	}
	return o.check(o.server.Namespace)
}

// waitJob is the state that all waits of a command share.
type waitJob struct {
	o        waitOptions
	goal     goal.Goal
	client   *apiclient.Client
	progress *waitProgress

	mu     sync.Mutex // guards the field below
	stdout io.Writer
}

// waitForAll waits for all targets at once. Its error joins those of the waits that failed.
func waitForAll[T api.Object](ctx context.Context, j *waitJob, targets []waitTarget, c await.Condition[T]) error {
	errs := make([]error, len(targets))
	var waits sync.WaitGroup
	for i, t := range targets {
		waits.Go(func() { errs[i] = waitFor(ctx, j, t, c) })
	}
	waits.Wait()
	return errors.Join(errs...)
}

// waitFor waits for one target, and prints the objects that meet the condition.
func waitFor[T api.Object](ctx context.Context, j *waitJob, t waitTarget, c await.Condition[T]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lw := apiclient.NewPartial[T](j.client, t.found, t.key.Namespace)
	o := await.Options{
		Selector: j.o.selector(), FailIfNone: !j.goal.Creation,
		OnError: func(err error) { j.progress.failed(t, err) },
		OnWaiting: func(waiting []await.Waiting) {
			j.progress.waiting(t, waiting)
			if j.o.timeout == 0 {
				cancel()
			}
		},
	}
	met, err := waitAs(ctx, lw, t, c, j.goal.Deletion, o)
	if err != nil {
		return j.explain(ctx, err)
	}
	j.progress.over(t)
	return j.print(t.found, met)
}

// waitAs waits for one object or for a selection, and returns the names of the objects that meet the condition.
func waitAs[T api.Object](ctx context.Context, lw api.ListerWatcher[T], t waitTarget, c await.Condition[T], deletion bool, o await.Options) ([]string, error) {
	var objects []T
	var err error
	switch {
	case t.key.Name != "":
		_, err = await.Object(ctx, lw, t.key, c, o)
		return []string{t.key.Name}, err
	case deletion:
		objects, err = await.Gone(ctx, lw, o)
	default:
		objects, err = await.All(ctx, lw, c, o)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names, err
}

// print writes the lines that kubectl wait writes.
func (j *waitJob) print(r api.Resource, names []string) error {
	kind := strings.ToLower(r.Kind)
	if r.Group != "" {
		kind += "." + r.Group
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range names {
		if _, err := visible.Fprintf(j.stdout, "%s/%s condition met\n", kind, name); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// explain returns an error that says why a wait ended.
func (j *waitJob) explain(ctx context.Context, err error) error {
	var unmet *await.UnmetError
	switch {
	case !errors.As(err, &unmet):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("timed out after %v waiting for %s of %s; %s", j.o.timeout, unmet.What, unmet.Subject, unmet.Progress())
	case j.o.timeout == 0 && unmet.Listed:
		return fmt.Errorf("%s of %s: not yet; %s", unmet.What, unmet.Subject, unmet.Progress())
	default:
		return fmt.Errorf("interrupted waiting for %s of %s; %s", unmet.What, unmet.Subject, unmet.Progress())
	}
}
