package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
)

// metricsFlag adds the flag for the address of the metrics.
func metricsFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "metrics", "", "address for Prometheus metrics, such as 127.0.0.1:9090; port 0 picks a free one (default: none)")
}

// scraper serves metrics for Prometheus. The methods of a nil scraper do nothing.
type scraper struct {
	*prometheus.Registry
	shown    *metrics.Metrics
	listener net.Listener
}

// newScraper listens on an address. It returns nil if the address is empty.
func newScraper(address string) (*scraper, error) {
	if address == "" {
		return nil, nil
	}
	s := &scraper{Registry: prometheus.NewRegistry()}
	s.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	if s.shown, err = metrics.New(s); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return s, nil
}

// during serves metrics while do runs. If the server fails, it ends the context of do.
func (s *scraper) during(ctx context.Context, do func(context.Context) error) error {
	if s == nil {
		return do(ctx)
	}
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.answer(answering) })
	both.Go(func() error {
		defer stop()
		return do(ctx)
	})
	return both.Wait()
}

func (s *scraper) answer(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics.Handler(s))
	server, err := manager.NewServer("metrics", manager.ServerOptions{Listener: s.listener, Handler: mux, SameOrigin: true})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// where returns a line with the URL of the metrics, or "" for a nil scraper.
func (s *scraper) where() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("metrics on http://%s/metrics\n", s.listener.Addr())
}

// onRequest returns the function for apiclient.Config.OnRequest, or nil.
func (s *scraper) onRequest() func(apiclient.Request) {
	if s == nil {
		return nil
	}
	return s.shown.OnRequest
}

func (s *scraper) informer(i metrics.Informer) error {
	if s == nil {
		return nil
	}
	_, err := s.shown.Informer("", i)
	return err
}

// watches adds a metric with the number of open watches of a server.
func (s *scraper) watches(open func() float64) {
	if s != nil {
		s.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "leat_server_watches", Help: "Watches that are open.",
		}, open))
	}
}

// controller shows a controller until remove is called.
func (s *scraper) controller(c metrics.Controller) (remove func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	added, err := s.shown.Controller(c)
	if err != nil {
		return nil, err
	}
	return added.Remove, nil
}
