package testserver

import "net/http"

// sink is where the frames of a watch go: an HTTP response or a WebSocket.
type sink interface {
	// send writes one frame whole.
	send(frame []byte) error
	// cut writes a part of a frame, after which the watch ends.
	cut(part []byte)
	// listed marks the end of the initial list.
	listed()
	// flush hands on what is buffered.
	flush()
	// end closes in good order; abort tears the connection down.
	end()
	abort()
	// release lets go of everything that the sink holds, however the watch ended.
	release()
	// gone closes when the client is no longer there.
	gone() <-chan struct{}
}

// httpSink streams frames in a chunked response.
type httpSink struct {
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	gzip    *gzipWriter // nil without compression
}

func (h *httpSink) send(frame []byte) error { _, err := h.w.Write(frame); return err }
func (h *httpSink) cut(part []byte)         { _, _ = h.w.Write(part); h.flush() } // it ends in any case
func (h *httpSink) flush()                  { _ = h.control.Flush() }             // a client that is gone shows at the next write
func (h *httpSink) release()                {}
func (h *httpSink) gone() <-chan struct{}   { return h.r.Context().Done() }

// abort hands on what was sent before it, so that what a client sees does not depend on when it was buffered.
func (h *httpSink) abort() {
	h.flush()
	resetRequest(h.r)
}

// listed starts another member of a compressed stream once the initial list is complete.
func (h *httpSink) listed() {
	if h.gzip != nil {
		h.gzip.finish()
	}
}

func (h *httpSink) end() { h.listed() }

// openSink begins the answer of a watch.
func (x *call) openSink() (sink, error) {
	if isWebSocket(x.http) {
		return x.upgrade()
	}
	h := &httpSink{w: x.w, r: x.http}
	if g, ok := x.compress(); ok {
		h.w, h.gzip = g, g
	}
	h.control = http.NewResponseController(h.w)
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	return h, nil
}
