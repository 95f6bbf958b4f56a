package main

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
)

// instruments show Prometheus what the program does.
type instruments struct {
	*metrics.Metrics
	registry *prometheus.Registry
}

func newInstruments() (*instruments, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m, err := metrics.New(registry)
	return &instruments{m, registry}, err
}

// handler answers at /metrics.
func (i *instruments) handler() http.Handler { return metrics.Handler(i.registry) }

// show shows what works. The recorders are shown where they are made, and have their names.
func (i *instruments) show(c *caches, controllers []*controller.Controller[api.Key], lease string, elector manager.Elector) error {
	var errs []error
	note := func(_ *metrics.Registration, err error) { errs = append(errs, err) }
	note(i.Informer("", c.deployments))
	note(i.Informer("", c.sets))
	note(i.Informer("", c.pods))
	for _, c := range controllers {
		note(i.Controller(c))
	}
	if e, contested := elector.(metrics.Elector); contested {
		note(i.Elector(lease, e))
	}
	return errors.Join(errs...)
}
