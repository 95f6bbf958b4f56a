package otel

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns next with a span for each request. It fits apiclient.Config.WrapTransport. A span ends when the
// body of the answer is closed, and that of a watch with the head of the answer.
func (t *Telemetry) Transport(next http.RoundTripper) http.RoundTripper { return &transport{t, next} }

type transport struct {
	t    *Telemetry
	next http.RoundTripper
}

// RoundTrip sends a request within a span.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	what := target(r.URL.Path)
	ctx, span := t.t.tracer.Start(r.Context(), r.Method+" "+what, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()),
		attribute.String("url.path", r.URL.Path), attribute.String("leat.resource", what),
	))
	r = r.Clone(ctx)
	t.t.propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		span.SetAttributes(attribute.String("error.type", fmt.Sprintf("%T", err))) // its text may have more than a span should
		span.SetStatus(codes.Error, "there is no answer")
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode))
	if answer.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, answer.Status)
	}
	_, upgraded := answer.Body.(io.Writer) // the body of a WebSocket is its connection
	if upgraded || watches(r) {
		span.End()
		return answer, nil
	}
	answer.Body = &body{ReadCloser: answer.Body, span: span}
	return answer, nil
}

// watches reports whether a request is a watch.
func watches(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return w == "1" || w == "true"
}

// body ends the span of its request.
type body struct {
	io.ReadCloser
	span trace.Span
	read atomic.Int64
	once sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() {
		b.span.SetAttributes(attribute.Int64("http.response.body.size", b.read.Load()))
		b.span.End()
	})
	return err
}

// target returns the resource of a path without names, so that spans have few different names: "pods",
// "deployments.apps/status". For a path that is not of a resource, it is the first two segments.
func target(path string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, s := range segments {
		switch rest := segments[i+1:]; {
		case s == "api" && len(rest) > 1:
			return resourceIn("", rest[1:])
		case s == "apis" && len(rest) > 2:
			return resourceIn(rest[0], rest[2:])
		}
	}
	return "/" + strings.Join(segments[:min(2, len(segments))], "/")
}

// resourceIn returns the name of the resource to which the segments after the version lead.
func resourceIn(group string, segments []string) string {
	if segments[0] == "namespaces" && len(segments) > 2 && segments[2] != "status" && segments[2] != "finalize" {
		segments = segments[2:]
	}
	name := segments[0]
	if group != "" {
		name += "." + group
	}
	if len(segments) > 2 {
		name += "/" + segments[2]
	}
	return name
}
