// Package otel connects leat with OpenTelemetry: a span for each reconcile with links to the events that caused it, a
// span for each request to the API server, and the metrics of a Prometheus registry. It is in a module of its own, so
// that leat does not require OpenTelemetry. The program chooses the exporters, for instance those of OTLP.
//
// # Example
//
//	spans, err := otlptracehttp.New(ctx)   // go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp
//	values, err := otlpmetrichttp.New(ctx) // go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp
//	t, err := otel.New(otel.Options{Name: "mill", Spans: spans, Metrics: values, Registry: registry})
//	config := apiclient.Config{Host: host, WrapTransport: t.Transport}
//	p, err := program.New(program.Options{Name: "mill", Config: config, Registry: registry})
//	program.Controller(p, "mill", otel.Reconciler(t, "mill", r), controller.For(pods.Informer()))
//	_, err = p.Manager.AddWith(t, manager.Placement{Group: manager.Servers}) // it ends last, after the last span
//
// See Example.
//
// # Promises
//
//  1. A reconcile has one span. It ends when the reconcile returns, and has its error, also after a panic.
//  2. Each cause has a span of its own, from the event to the begin of the reconcile, and the reconcile has a link to
//     it. The time of the event is an attribute. A repeated attempt has a link to the attempt before.
//  3. Each attempt of a request has a span, below that of the reconcile. The API server gets its context as a
//     traceparent header. The span has no query, no header, no body and no credential.
//  4. Run writes everything that has ended before it returns, within a bounded time.
//
// # Concurrency
//
// A Telemetry is safe for concurrent use. Run blocks. The libraries of OpenTelemetry start goroutines, which Run ends.
//
// # Differences from client-go
//
// client-go and controller-runtime have no spans. A watch has a span until the head of its answer, because a span that
// ends after ten minutes would arrive too late.
package otel
