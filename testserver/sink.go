package testserver

import "net/http"

// sink is where the frames of a watch go: an HTTP response or a WebSocket.
type sink interface {
	// send writes one frame whole.
	send(frame []byte) error
	// cut writes a part of a frame, after which the watch ends.
	cut(part []byte)
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
	reset   func()
}

func (h *httpSink) send(frame []byte) error { _, err := h.w.Write(frame); return err }
func (h *httpSink) cut(part []byte)         { _, _ = h.w.Write(part); h.flush() } // it ends in any case
func (h *httpSink) flush()                  { _ = h.control.Flush() }             // a client that is gone shows at the next write
func (h *httpSink) end()                    {}
func (h *httpSink) abort()                  { h.reset() }
func (h *httpSink) release()                {}
func (h *httpSink) gone() <-chan struct{}   { return h.r.Context().Done() }

// openSink begins the answer of a watch.
func (x *call) openSink() (sink, error) {
	if isWebSocket(x.http) {
		return x.upgrade()
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	r := x.http
	return &httpSink{w: x.w, control: http.NewResponseController(x.w), r: r, reset: func() { resetRequest(r) }}, nil
}
