package otel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/leatproject/leat/adapter/otel"

const (
	defaultInterval = time.Minute
	defaultFlush    = 5 * time.Second
)

// Options configure a Telemetry. Name is required.
type Options struct {
	// Name is the name of the program, the attribute service.name of everything that is exported.
	Name string
	// Attributes are further attributes of the program.
	Attributes []attribute.KeyValue

	// Spans receives the spans that have ended, in batches. Nil means that spans are not exported.
	Spans sdktrace.SpanExporter
	// Sampler decides which spans are recorded. Nil means all of those whose parent is recorded or missing.
	Sampler sdktrace.Sampler

	// Metrics receives the metrics of Registry. Both or neither must be set.
	Metrics metric.Exporter
	// Registry has the metrics, for instance Program.Registry.
	Registry prometheus.Gatherer
	// Interval is the time between two exports of the metrics. Zero means a minute.
	Interval time.Duration

	// Flush is the time that Run has for the last exports after its context has ended. Zero means 5 s.
	Flush time.Duration
}

// Telemetry exports spans and metrics. It is a Runnable of package manager.
type Telemetry struct {
	o          Options
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	shutdown   []func(context.Context) error
}

// New returns a Telemetry that exports until Run ends. Its exporters have goroutines from here on, which Run ends. If
// the options are invalid, New returns all errors, joined.
func New(o Options) (*Telemetry, error) {
	var wrong []error
	if o.Name == "" {
		wrong = append(wrong, errors.New("otel: Options.Name is empty"))
	}
	if (o.Metrics == nil) != (o.Registry == nil) {
		wrong = append(wrong, errors.New("otel: Options need both Metrics and Registry, or neither"))
	}
	if o.Interval < 0 || o.Flush < 0 {
		wrong = append(wrong, errors.New("otel: Options.Interval and Options.Flush must not be negative"))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Flush == 0 {
		o.Flush = defaultFlush
	}
	if o.Sampler == nil {
		o.Sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
	t := &Telemetry{o: o, propagator: propagation.TraceContext{}}
	about := resource.NewSchemaless(append([]attribute.KeyValue{attribute.String("service.name", o.Name)}, o.Attributes...)...)
	t.makeTracer(about)
	t.makeMeter(about)
	return t, nil
}

func (t *Telemetry) makeTracer(about *resource.Resource) {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithSampler(t.o.Sampler)}
	if t.o.Spans != nil {
		options = append(options, sdktrace.WithBatcher(t.o.Spans))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.tracer = provider.Tracer(scope)
	t.shutdown = append(t.shutdown, provider.Shutdown)
}

func (t *Telemetry) makeMeter(about *resource.Resource) {
	if t.o.Metrics == nil {
		return
	}
	reader := metric.NewPeriodicReader(t.o.Metrics, metric.WithInterval(t.o.Interval),
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(t.o.Registry))))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(about))
	t.shutdown = append(t.shutdown, provider.Shutdown)
}

// Name returns "telemetry", the name in logs and errors of a Manager.
func (t *Telemetry) Name() string { return "telemetry" }

// Run waits until ctx ends, and then writes what is left within Options.Flush. The error says why it could not. A
// Telemetry runs once. A Manager should run it in its group Servers, which ends last; see manager.Placement.
func (t *Telemetry) Run(ctx context.Context) error {
	<-ctx.Done()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.o.Flush)
	defer cancel()
	failures := make([]error, len(t.shutdown))
	var all sync.WaitGroup
	for i, shutdown := range t.shutdown { // at the same time, so that one that hangs leaves time for the other
		all.Go(func() {
			if err := shutdown(limit); err != nil {
				failures[i] = fmt.Errorf("otel: write the last spans and metrics: %w", err)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}
