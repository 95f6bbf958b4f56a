package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/spf13/cobra"

	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/testserver"
)

func newServe() *cobra.Command {
	var o serve.Options
	var metrics string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a Kubernetes API from memory",
		Long: `Serve a Kubernetes API from memory until interrupted, and write a kubeconfig for it. It has the common built-in
resources without their types: no defaults, little validation, no protobuf. It takes CustomResourceDefinitions and speaks
JSON and YAML. leat watch, and clients that read and write JSON, can use it. docs/serve.md describes leat-server, which
has the same flags and the types of Kubernetes, so that kubectl apply and clients with their defaults work.

The state is forgotten at the end, unless --data names a file. The server misbehaves on demand: see --fault, and the
requests that GET / of the admin endpoint lists. It refuses requests that a browser sends for a page of another origin.`,
		Example: `  leat serve --listen 127.0.0.1:8080 --kubeconfig-out leat.kubeconfig
  leat watch configmaps -A --kubeconfig leat.kubeconfig
  leat serve --fault 'watch pods: drop 10%' --fault 'outage after=1m for=5s' --seed 7
  leat serve --admin 127.0.0.1:8081 & curl -d 'list pods: fail 503 times=3' http://127.0.0.1:8081/faults`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runServe(cmd.Context(), cmd.OutOrStdout(), o, metrics)
		},
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.Flags(flags)
	cmd.Flags().AddGoFlagSet(flags)
	metricsFlag(cmd, &metrics)
	return cmd
}

func runServe(ctx context.Context, stdout io.Writer, o serve.Options, metrics string) error {
	err := o.Check()
	var scraper *scraper
	if err == nil {
		scraper, err = newScraper(metrics)
	}
	if err == nil {
		err = serveWith(ctx, stdout, o, scraper)
	}
	var wrong *serve.UsageError
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
	return err
}

func serveWith(ctx context.Context, stdout io.Writer, o serve.Options, scraper *scraper) error {
	return scraper.during(ctx, func(ctx context.Context) error {
		return o.Run(ctx, stdout, serve.Hooks{
			New: newUntyped,
			Started: func(s *testserver.Server) {
				scraper.watches(func() float64 { return float64(len(s.Watches())) })
			},
			Notice: scraper.where(),
		})
	})
}

func newUntyped(o testserver.Options, _ bool) (serve.Backend, error) {
	server := testserver.New(o)
	return serve.Backend{Server: server, Serve: server.Serve}, nil
}
