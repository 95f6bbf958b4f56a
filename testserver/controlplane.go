package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"syscall"

	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// insider is the user of the control plane.
var insider = registry.User{Name: "system:apiserver", Groups: []string{"system:masters", "system:authenticated"}}

// insideKey marks the context of a request of the control plane.
type insideKey struct{}

// inside reports whether a request comes from the control plane.
func inside(r *http.Request) bool { return r.Context().Value(insideKey{}) != nil }

// ControlPlane returns a transport for controllers that belong to the cluster and not to the program under test, such
// as a garbage collector. Its requests call the server without a connection, so they need no Run. They need no
// authentication and no permission. Faults do not affect them, except Compact and Restore, and they are neither in
// Requests nor in Watches: a test counts and disturbs only the requests of its own clients. When Load or Restore
// replaces the state, its watches end with a 410, so that informers list again.
//
// The transport starts a goroutine for each request, which has ended when Close of the answer's body returns.
func (s *Server) ControlPlane() http.RoundTripper { return &controlPlane{s} }

type controlPlane struct{ server *Server }

// RoundTrip answers a request. It blocks until the server has begun its answer or the context of the request ends.
func (c *controlPlane) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), insideKey{}, true))
	in := r.Clone(ctx)
	in.Host = pipe.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, w := newInsideWriter()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer in.Body.Close()
		defer func() { w.finish(recover()) }()
		c.server.handle(w, in)
	}()
	out := &insideBody{PipeReader: body, cancel: cancel, ended: ended}
	select {
	case <-w.begun:
	case <-ctx.Done():
	}
	if err := context.Cause(r.Context()); err != nil { // the handler may have ended, and begun an answer, because of that
		_ = out.Close() // it never fails
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: out, ContentLength: -1, Request: r,
	}, nil
}

// insideBody is the body of an answer. Close ends the request.
type insideBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  <-chan struct{}
}

// Close ends the request, and returns when its goroutine has ended.
func (b *insideBody) Close() error {
	b.cancel()
	_ = b.PipeReader.Close() // it never fails
	<-b.ended
	return nil
}

// insideWriter is the answer of a request while it is written. Only the goroutine of the request uses it.
type insideWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closes when code and sent are set

	code int
	sent http.Header
}

func newInsideWriter() (*io.PipeReader, *insideWriter) {
	r, w := io.Pipe()
	return r, &insideWriter{header: http.Header{}, body: w, begun: make(chan struct{})}
}

// Header returns the header of the answer.
func (w *insideWriter) Header() http.Header { return w.header }

// WriteHeader begins the answer. Later calls do nothing.
func (w *insideWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, maps.Clone(w.header)
		close(w.begun)
	})
}

// Write blocks until the client has read the bytes.
func (w *insideWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush does nothing, because nothing is buffered.
func (w *insideWriter) Flush() { w.WriteHeader(http.StatusOK) }

// finish ends the answer. A handler that panics with http.ErrAbortHandler resets the connection; any other panic is a
// bug, which the client gets as an error.
func (w *insideWriter) finish(panicked any) {
	var err error
	switch cause, _ := panicked.(error); {
	case panicked == nil:
	case errors.Is(cause, http.ErrAbortHandler):
		err = syscall.ECONNRESET
	default:
		err = fmt.Errorf("testserver: the handler panicked: %v", panicked)
	}
	w.WriteHeader(http.StatusOK)
	_ = w.body.CloseWithError(err) // it never fails
}
