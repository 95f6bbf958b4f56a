package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cmd/leat/internal/demo"
	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
)

func newServe() *cobra.Command {
	var o serve.Options
	var metrics, page string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a Kubernetes API from memory",
		Long: `Serve a Kubernetes API from memory until interrupted, and write a kubeconfig for it. It has the common built-in
resources without their types: no defaults, little validation, no protobuf. It takes CustomResourceDefinitions and speaks
JSON and YAML. leat watch, and clients that read and write JSON, can use it. docs/serve.md describes leat-server, which
has the types of Kubernetes, so that kubectl apply and clients with their defaults work. Its flags are the same, without
--metrics and --page, and with those of a cluster.

The state is forgotten at the end, unless --data names a file. The server misbehaves on demand: see --fault, and the
requests that GET / of the admin endpoint lists. It refuses requests that a browser sends for a page of another origin.`,
		Example: `  leat serve --listen 127.0.0.1:8080 --kubeconfig-out leat.kubeconfig
  leat watch configmaps -A --kubeconfig leat.kubeconfig
  leat serve --fault 'watch pods: drop 10%' --fault 'outage after=1m for=5s' --seed 7
  leat serve --admin 127.0.0.1:8081 & curl -d 'list pods: fail 503 times=3' http://127.0.0.1:8081/faults`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runServe(cmd.Context(), cmd.OutOrStdout(), o, metrics, page)
		},
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.Flags(flags)
	cmd.Flags().AddGoFlagSet(flags)
	endpoint.MetricsFlag(cmd, &metrics)
	endpoint.PageFlag(cmd, &page)
	return cmd
}

func runServe(ctx context.Context, stdout io.Writer, o serve.Options, metrics, pageAddress string) error {
	err := o.Check()
	var scraper *endpoint.Metrics
	var page *endpoint.Page
	if err == nil {
		scraper, err = endpoint.NewMetrics(metrics)
	}
	if err == nil {
		page, err = endpoint.NewPage(pageAddress, livepage.Options{Program: "leat serve"})
	}
	if err == nil {
		err = page.During(ctx, func(ctx context.Context) error { return serveWith(ctx, stdout, o, scraper, page) })
	}
	var wrong *serve.UsageError
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
	return err
}

func serveWith(ctx context.Context, stdout io.Writer, o serve.Options, scraper *endpoint.Metrics, page *endpoint.Page) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var watching errgroup.Group
	err := scraper.During(ctx, func(ctx context.Context) error {
		return o.Run(ctx, stdout, serve.Hooks{
			New: newUntyped,
			Started: func(s *testserver.Server) {
				scraper.Watches(func() float64 { return float64(len(s.Watches())) })
				if page != nil {
					showServer(ctx, s, page, &watching)
				}
			},
			Notice: scraper.Where() + page.Where(),
		})
	})
	stop()
	return errors.Join(err, watching.Wait())
}

// shownByServe are the resources that the page of leat serve shows, with informers of its own.
var shownByServe = []api.Resource{
	{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true},
	{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
	{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true},
}

// showServer shows the objects of a server on the page, through informers that run until ctx ends, and offers faults.
func showServer(ctx context.Context, s *testserver.Server, page *endpoint.Page, running *errgroup.Group) {
	active := faultplan.NewActive(s, 1)
	page.Offer(demo.ServerActions(s, active)...)
	context.AfterFunc(ctx, active.Close)
	client, err := apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.ControlPlane(), UserAgent: "leat page"})
	if err != nil {
		running.Go(func() error { return err })
		return
	}
	for _, r := range shownByServe {
		i := informer.New(api.ListerWatcher[*unstructured.Unstructured](
			apiclient.NewTyped[*unstructured.Unstructured](client, r, "")), informer.Options[*unstructured.Unstructured]{
			Tuning: reflector.Tuning{BackoffBase: 10 * time.Millisecond, BackoffMax: time.Second}, // for a server in this process
		})
		page.Show(i)
		running.Go(func() error { return i.Run(ctx) })
	}
}

func newUntyped(o testserver.Options, _ bool) (serve.Backend, error) {
	return untyped(testserver.New(o)), nil
}

func untyped(s *testserver.Server) serve.Backend {
	return serve.Backend{Server: s, Serve: s.Serve, Run: s.Run, Fork: func() serve.Backend { return untyped(s.Fork()) }}
}
