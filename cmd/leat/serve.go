package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/sameorigin"
	"github.com/leatproject/leat/testserver"
)

// serveOptions are the flags of leat serve.
type serveOptions struct {
	listen       string
	allowedHosts []string
	kubeconfig   string
	token        string
	tls          bool
	metrics      string
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a Kubernetes API from memory",
		Long: `Serve a Kubernetes API from memory until interrupted, and write a kubeconfig for it. It has the common built-in
resources, takes CustomResourceDefinitions, speaks JSON, and forgets everything when it ends. leat watch and kubectl can
use it, except for the few commands of kubectl that need protobuf. It refuses requests that a browser sends for a page of
another origin.`,
		Example: `  leat serve --listen 127.0.0.1:8080 --kubeconfig-out leat.kubeconfig
  leat watch configmaps -A --kubeconfig leat.kubeconfig`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 picks a free one")
	f.StringArrayVar(&o.allowedHosts, "allow-host", nil, "further host or host:port that requests may name, such as that of a tunnel or a proxy; may be repeated")
	f.StringVar(&o.kubeconfig, "kubeconfig-out", "leat.kubeconfig", "where to write a kubeconfig; empty writes none")
	f.StringVar(&o.token, "token", "", "bearer token that clients must send")
	f.BoolVar(&o.tls, "tls", false, "serve over TLS and HTTP/2, with a certificate of its own")
	metricsFlag(cmd, &o.metrics)
	return cmd
}

func (o serveOptions) run(ctx context.Context, stdout io.Writer) error {
	if _, err := sameorigin.New(o.allowedHosts); err != nil {
		return usagef("--allow-host: %w", err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	if !address.IP.IsLoopback() && o.token == "" {
		return usagef("--listen %s: others can reach it, so it needs a --token", o.listen)
	}
	scraper, err := newScraper(o.metrics)
	if err != nil {
		return err
	}
	server := testserver.New(o.server())
	scraper.watches(func() float64 { return float64(len(server.Watches())) })
	cfg := o.config(server, address)
	if o.kubeconfig != "" {
		if err := kubeconfig.Write(o.kubeconfig, cfg, kubeconfig.DefaultNamespace); err != nil {
			return fmt.Errorf("--kubeconfig-out: %w", err)
		}
	}
	fmt.Fprintf(stdout, "serving on %s\n", cfg.Host)
	if o.kubeconfig != "" {
		fmt.Fprintf(stdout, "try: leat watch configmaps -A --kubeconfig %s\n", o.kubeconfig)
	}
	fmt.Fprint(stdout, scraper.where())
	return scraper.during(ctx, func(ctx context.Context) error { return server.Serve(ctx, listener) })
}

func (o serveOptions) server() testserver.Options {
	so := testserver.Options{TLS: o.tls, HTTP2: o.tls, ManagedFields: true, ImmediateDeletion: true, AllowedHosts: o.allowedHosts}
	if o.token != "" {
		so.Tokens = testserver.Tokens{o.token: "admin"}
	}
	return so
}

// config returns the configuration of a client on this machine. The certificate is for loopback, so a client needs the
// name in it if the server has another address.
func (o serveOptions) config(server *testserver.Server, address *net.TCPAddr) apiclient.Config {
	host := address.String()
	if address.IP.IsUnspecified() { // a client cannot connect to it
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(address.Port))
	}
	if !o.tls {
		return apiclient.Config{Host: "http://" + host, BearerToken: apiclient.NewSecret(o.token)}
	}
	return apiclient.Config{
		Host: "https://" + host, BearerToken: apiclient.NewSecret(o.token),
		TLS: apiclient.TLS{CAData: server.CA(), ServerName: "localhost"},
	}
}
