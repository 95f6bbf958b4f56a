package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/reflector"
)

// watchOptions are the flags of leat watch.
type watchOptions struct {
	server kubeconfig.Options
	selection
	output      string
	once        bool
	webSocket   bool
	paged       bool
	metrics     string
	scraper     *endpoint.Metrics // of metrics
	pageAddress string
	page        *endpoint.Page
}

func newWatch() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch RESOURCE",
		Short: "List and watch a resource, and print a line for each event",
		Long: `List and watch a resource through the whole pipeline, from the API client to an informer's handler. Print a line for
each event: ADDED, MODIFIED or DELETED with the key and the version, and SYNCED after the first list.

RESOURCE is a plural, singular or short name, or a kind. Add the group, and the version, if the name is ambiguous: pods,
po, deployment, deployments.apps, certificates.v1.cert-manager.io. kubectl api-resources lists the names.

Output formats: line; json, a line with the type and the object; name, only the key (and no SYNCED).`,
		Example: `  leat watch pods -A
  leat watch deploy -n shop -l app=web -o json
  leat watch pods --field-selector spec.nodeName=node-1 --once -o name`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one resource, such as pods, and got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	connectFlags(cmd, &o.server)
	o.addFlags(cmd, "watch")
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "line", "output format: line, json or name")
	f.BoolVar(&o.once, "once", false, "end when the first list is complete")
	f.BoolVar(&o.webSocket, "websocket", false, "watch over WebSocket instead of a chunked answer")
	f.BoolVar(&o.paged, "paged", false, "take the first list in pages instead of a WatchList")
	endpoint.MetricsFlag(cmd, &o.metrics)
	endpoint.PageFlag(cmd, &o.pageAddress)
	return cmd
}

func (o watchOptions) run(ctx context.Context, resource string, stdout, stderr io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	scraper, err := endpoint.NewMetrics(o.metrics)
	if err != nil {
		return err
	}
	page, err := endpoint.NewPage(o.pageAddress, livepage.Options{Program: "leat watch " + resource})
	if err != nil {
		return err
	}
	o.scraper, o.page = scraper, page
	_, _ = io.WriteString(stderr, scraper.Where()+page.Where()) // the watch runs without these lines too
	return scraper.During(ctx, func(ctx context.Context) error {
		return page.During(ctx, func(ctx context.Context) error { return o.watch(ctx, resource, stdout, stderr) })
	})
}

func (o watchOptions) watch(ctx context.Context, resource string, stdout, stderr io.Writer) error {
	client, namespace, err := connect(ctx, o.server, o.scraper.OnRequest())
	if err != nil {
		return endOrError(ctx, err)
	}
	defer client.CloseIdleConnections()
	r, err := discovery.Lookup(ctx, client, resource)
	if err != nil {
		return endOrError(ctx, err)
	}
	namespace = o.namespaceOf(r, namespace)
	if o.output == "json" {
		return watchAs[*unstructured.Unstructured](ctx, o, client, r, namespace, stdout, stderr)
	}
	return watchAs[*metav1.PartialObjectMetadata](ctx, o, client, r, namespace, stdout, stderr)
}

func (o watchOptions) validate() error {
	if err := o.check(o.server.Namespace); err != nil {
		return err
	}
	switch o.output {
	case "line", "json", "name":
		return nil
	default:
		return usagef("--output %q: the formats are line, json and name", o.output)
	}
}

// watchAs watches objects of type T, the smallest type that has all that the output prints.
func watchAs[T api.Object](ctx context.Context, o watchOptions, client *apiclient.Client, r api.Resource, namespace string, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	view := apiclient.NewPartial[T](client, r, namespace)
	lw := api.ListerWatcher[T](view)
	if o.webSocket {
		lw = websocket.Watch(view)
	}
	out := newPrinter[T](o.output, r, stdout)
	var i *informer.Informer[T]
	i = informer.New(lw, informer.Options[T]{
		Selector: o.selector(), Tuning: reflector.Tuning{NoWatchList: o.paged},
		Memory: reflector.Memory{KeepManagedFields: true},
		Hooks:  reflector.Hooks{OnError: func(err error) { endOrTell(cancel, stderr, i.Status(), err) }},
	})
	if err := o.scraper.Informer(i); err != nil {
		return err
	}
	o.page.Show(i)
	written := func(err error) {
		if err != nil {
			cancel(fmt.Errorf("write: %w", err))
		}
	}
	announce := sync.OnceFunc(func() {
		now := i.Snapshot()
		written(out.synced(now.Len(), now.ResourceVersion()))
	})
	registration, err := i.Subscribe(func(n api.Change[T]) {
		if !n.InitialList {
			announce() // this handler may run before Synced is closed
		}
		written(out.event(n))
	}, informer.HandlerOptions{Name: "printer"})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	select {
	case <-registration.Synced():
		announce()
		if o.once {
			cancel(nil)
		}
	case <-ctx.Done():
	}
	if err := <-ended; err != nil {
		return err
	}
	return endOrError(ctx, context.Cause(ctx))
}

// endOrTell ends a command with an error that will not go away by itself, and prints others if the user needs them.
func endOrTell(end context.CancelCauseFunc, stderr io.Writer, status informer.Status, err error) {
	if !status.Synced && hopeless(status.Reflector.Phase, err) {
		end(err)
	} else if worthTelling(status.Reflector.Phase, err) {
		visible.Fprintf(stderr, "leat: %s; trying again\n", oneLine(err))
	}
}

// hopeless reports whether an error before the end of the first list needs the user: it will not go away by itself. The
// refusal of a WatchList is not such an error, because a list in pages follows.
func hopeless(phase reflector.Phase, err error) bool {
	var certificate *apiclient.CertificateError
	switch {
	case apierrors.IsUnauthorized(err), errors.As(err, &certificate):
		return true
	case phase == reflector.Listing:
		return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) ||
			apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
	default:
		return false
	}
}

// worthTelling reports whether the command prints an error. It does not print that a version is gone, or that a server
// refuses a WatchList, because the pipeline recovers from both by itself.
func worthTelling(phase reflector.Phase, err error) bool {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false
	}
	var status apierrors.APIStatus
	refused := errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 429
	return !refused || phase != reflector.WatchList
}

// endOrError returns nil if err is only the end of the context.
func endOrError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
