package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/metrics"
)

// MetricsFlag adds the flag for the address of the metrics.
func MetricsFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "metrics", "", "address for Prometheus metrics, such as 127.0.0.1:9090; port 0 picks a free one (default: none)")
}

// Metrics serves metrics for Prometheus. The methods of a nil Metrics do nothing.
type Metrics struct {
	*prometheus.Registry
	shown    *metrics.Metrics
	listener net.Listener
}

// NewMetrics listens on an address. It returns nil if the address is empty.
func NewMetrics(address string) (*Metrics, error) {
	if address == "" {
		return nil, nil
	}
	m := &Metrics{Registry: prometheus.NewRegistry()}
	m.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	if m.shown, err = metrics.New(m); err != nil {
		return nil, err
	}
	if m.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return m, nil
}

// During serves the metrics while do runs. If the server fails, it ends the context of do.
func (m *Metrics) During(ctx context.Context, do func(context.Context) error) error {
	if m == nil {
		return do(ctx)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics.Handler(m))
	return during(ctx, "metrics", m.listener, mux, do)
}

// Where returns a line with the URL of the metrics, or "" for a nil Metrics.
func (m *Metrics) Where() string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("metrics on http://%s/metrics\n", m.listener.Addr())
}

// OnRequest returns the function for apiclient.Config.OnRequest, or nil.
func (m *Metrics) OnRequest() func(apiclient.Request) {
	if m == nil {
		return nil
	}
	return m.shown.OnRequest
}

// Informer shows an informer.
func (m *Metrics) Informer(i metrics.Informer) error {
	if m == nil {
		return nil
	}
	_, err := m.shown.Informer("", i)
	return err
}

// Watches adds a metric with the number of open watches of a server.
func (m *Metrics) Watches(open func() float64) {
	if m != nil {
		m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "leat_server_watches", Help: "Watches that are open.",
		}, open))
	}
}

// Controller shows a controller until remove is called.
func (m *Metrics) Controller(c metrics.Controller) (remove func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	added, err := m.shown.Controller(c)
	if err != nil {
		return nil, err
	}
	return added.Remove, nil
}
