package wire

import (
	"net/http"

	"github.com/leatproject/leat/internal/pipe"
)

// Sink receives the frames of a watch: an HTTP response or a WebSocket.
type Sink interface {
	// Send writes one complete frame.
	Send(frame []byte) error
	// Cut writes the first bytes of a frame. The watch ends after it.
	Cut(frame []byte, bytes int)
	// Listed marks the end of the initial list.
	Listed()
	// Flush sends buffered bytes.
	Flush()
	// End closes the stream normally.
	End()
	// Abort resets the connection.
	Abort()
	// Release frees everything that the sink owns. The watcher calls it in every case.
	Release()
	// Disconnected returns a channel that closes when the client has disconnected.
	Disconnected() <-chan struct{}
}

// httpSink streams frames in a chunked response.
type httpSink struct {
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	gzip    *GzipWriter // nil without compression
	joiner  *pipe.Joiner
}

func (h *httpSink) Send(frame []byte) error {
	h.joiner.Join()
	_, err := h.w.Write(frame)
	return err
}

// Flush sends everything. If the client has gone, the next write fails.
func (h *httpSink) Flush() {
	if h.joiner.Kept() == 0 {
		h.Release() // a single small frame needs no copy
	}
	_ = h.control.Flush() // as above
	h.Release()
}

// Release leaves nothing to the connection that net/http does not know.
func (h *httpSink) Release()                      { _ = h.joiner.Send() } // as above
func (h *httpSink) Disconnected() <-chan struct{} { return h.r.Context().Done() }

func (h *httpSink) Cut(frame []byte, bytes int) {
	_, _ = h.w.Write(firstBytes(frame, bytes)) // the watch ends in any case
	h.Flush()
}

func firstBytes(frame []byte, n int) []byte { return frame[:min(max(n, 0), len(frame))] }

// Abort flushes first, so that what a client receives does not depend on buffering.
func (h *httpSink) Abort() {
	h.Flush()
	pipe.ResetRequest(h.r)
}

// Listed starts another gzip member after the initial list.
func (h *httpSink) Listed() {
	if h.gzip != nil {
		h.gzip.Finish()
	}
}

func (h *httpSink) End() { h.Listed() }

// NewSink begins the answer of a watch. It returns nil if a WebSocket handshake failed and was answered.
func NewSink(w http.ResponseWriter, r *http.Request, mediaType string, compressed bool) Sink {
	if isWebSocket(r) {
		return upgrade(w, r, mediaType == Protobuf)
	}
	h := &httpSink{w: w, r: r, joiner: pipe.JoinerOf(w, r)}
	if compressed {
		if g, ok := Compress(w, r); ok {
			h.w, h.gzip = g, g
		}
	}
	h.control = http.NewResponseController(h.w)
	if mediaType == Protobuf {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusOK)
	return h
}
