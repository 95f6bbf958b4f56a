package testserver

import (
	"net/http"

	"github.com/leatproject/leat/testserver/internal/pipe"
)

// sink receives the frames of a watch: an HTTP response or a WebSocket.
type sink interface {
	// send writes one complete frame.
	send(frame []byte) error
	// cut writes a part of a frame. The watch ends after it.
	cut(part []byte)
	// listed marks the end of the initial list.
	listed()
	// flush sends buffered bytes.
	flush()
	// end closes the stream normally; abort resets the connection.
	end()
	abort()
	// release frees everything that the sink owns. The watcher calls it in every case.
	release()
	// disconnected returns a channel that closes when the client has disconnected.
	disconnected() <-chan struct{}
}

// httpSink streams frames in a chunked response.
type httpSink struct {
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	gzip    *gzipWriter // nil without compression
}

func (h *httpSink) send(frame []byte) error       { _, err := h.w.Write(frame); return err }
func (h *httpSink) cut(part []byte)               { _, _ = h.w.Write(part); h.flush() } // the watch ends in any case
func (h *httpSink) flush()                        { _ = h.control.Flush() }             // if the client has gone, the next write fails
func (h *httpSink) release()                      {}
func (h *httpSink) disconnected() <-chan struct{} { return h.r.Context().Done() }

// abort flushes first, so that what a client receives does not depend on buffering.
func (h *httpSink) abort() {
	h.flush()
	pipe.ResetRequest(h.r)
}

// listed starts another gzip member after the initial list.
func (h *httpSink) listed() {
	if h.gzip != nil {
		h.gzip.finish()
	}
}

func (h *httpSink) end() { h.listed() }

// openSink begins the answer of a watch. It returns nil if a WebSocket handshake failed and was answered.
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
