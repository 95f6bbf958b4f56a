package otel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// Reconciler returns r with a span for each reconcile, which is called "reconcile" and the name. The context of the
// reconcile has the span. The name is that of the controller. A gate belongs outside:
// controller.Gated(otel.Reconciler(…), gate).
func Reconciler[K comparable](t *Telemetry, name string, r controller.Reconciler[K]) controller.Reconciler[K] {
	if t == nil || r == nil {
		panic("otel: Reconciler needs a Telemetry and a reconciler")
	}
	return &reconciler[K]{t: t, name: name, inner: r, failed: map[K]trace.SpanContext{}}
}

// maxFailed limits the memory of keys that fail and never come again.
const maxFailed = 10_000

type reconciler[K comparable] struct {
	t     *Telemetry
	name  string
	inner controller.Reconciler[K]

	mu sync.Mutex // guards the field below
	// failed has the span of the last attempt of each key that has failed. A key leaves it with its next success.
	failed map[K]trace.SpanContext
}

// Reconcile calls the reconciler within a span.
func (r *reconciler[K]) Reconcile(ctx context.Context, key K) (result controller.Result, err error) {
	attempt := controller.Attempt(ctx)
	ctx, span := r.t.tracer.Start(ctx, "reconcile "+r.name, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(r.links(ctx, key, attempt)...), trace.WithAttributes(
			attribute.String("leat.controller", r.name), attribute.String("leat.key", format(key)),
			attribute.String("leat.reconcile.id", controller.ReconcileID(ctx)), attribute.Int("leat.attempt", attempt),
		))
	returned := false
	defer func() {
		if !returned { // a panic passes, because the controller contains it
			span.SetStatus(codes.Error, "the reconciler panicked")
		}
		r.remember(key, span.SpanContext(), !returned || err != nil)
		span.End()
	}()
	result, err = r.inner.Reconcile(ctx, key)
	returned = true
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	if result.RequeueAfter > 0 {
		span.SetAttributes(attribute.String("leat.requeue.after", result.RequeueAfter.String()))
	}
	return result, err
}

// links returns a link for each cause, and one to the attempt before.
func (r *reconciler[K]) links(ctx context.Context, key K, attempt int) (links []trace.Link) {
	now := time.Now()
	for _, c := range controller.Causes(ctx) {
		links = append(links, r.t.event(ctx, c, now))
	}
	if before, ok := r.before(key); ok && attempt > 1 {
		links = append(links, trace.Link{SpanContext: before, Attributes: []attribute.KeyValue{attribute.Int("leat.attempt", attempt-1)}})
	}
	return links
}

// event makes the span of a cause, which ends now, and returns a link to it. The span has a trace of its own, because
// one event may cause several reconciles, and one reconcile may have several causes.
func (t *Telemetry) event(ctx context.Context, c workqueue.Cause, now time.Time) trace.Link {
	attributes := []attribute.KeyValue{
		attribute.String("leat.event.source", c.Source), attribute.String("leat.event.type", c.Event),
		attribute.String("leat.event.object", c.Object), attribute.String("leat.event.version", c.Version),
		attribute.String("leat.event.time", c.At.UTC().Format(time.RFC3339Nano)),
	}
	_, span := t.tracer.Start(ctx, "event "+c.Source, trace.WithNewRoot(), trace.WithTimestamp(c.At), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(now))
	return trace.Link{SpanContext: span.SpanContext(), Attributes: attributes}
}

func (r *reconciler[K]) before(key K) (trace.SpanContext, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.failed[key]
	return c, ok
}

func (r *reconciler[K]) remember(key K, span trace.SpanContext, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed {
		if len(r.failed) >= maxFailed {
			clear(r.failed)
		}
		r.failed[key] = span
		return
	}
	delete(r.failed, key)
}

// format formats a key as the logs of a controller do.
func format[K comparable](key K) string {
	if k, ok := any(key).(api.Key); ok {
		return api.FormatKey(k)
	}
	return fmt.Sprint(key)
}
