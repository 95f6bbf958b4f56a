package wire

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leatproject/leat/testserver/internal/pipe"
)

// isWebSocket reports whether a request asks for a WebSocket.
func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && wants(r.Header.Get("Connection"), "upgrade")
}

// wants reports whether a comma-separated header contains a value.
func wants(header, value string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if strings.EqualFold(strings.TrimSpace(part), value) {
			return true
		}
	}
	return false
}

// upgrade performs the handshake as kube-apiserver does. A missing or malformed Origin gets 403, and more than one
// sub-protocol gets 400, both with an empty body. A single sub-protocol is echoed. If upgrade rejects the handshake, it
// answers the request and returns nil.
func upgrade(w http.ResponseWriter, r *http.Request) Sink {
	if _, err := url.ParseRequestURI(r.Header.Get("Origin")); err != nil {
		w.WriteHeader(http.StatusForbidden)
		return nil
	}
	protocols := websocket.Subprotocols(r)
	if len(protocols) > 1 {
		w.WriteHeader(http.StatusBadRequest)
		return nil
	}
	upgrader := websocket.Upgrader{
		Subprotocols: protocols,
		CheckOrigin:  func(*http.Request) bool { return true },
		Error:        func(w http.ResponseWriter, _ *http.Request, code int, _ error) { w.WriteHeader(code) },
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // the upgrader has answered
	}
	s := &wsSink{conn: conn, done: make(chan struct{}), closed: make(chan struct{})}
	s.running.Go(s.read)
	s.running.Go(func() { s.closeOnStop(r.Context().Done()) })
	return s
}

// wsSink sends each frame as a text message. It has two goroutines; release waits for them.
type wsSink struct {
	conn    *websocket.Conn
	running sync.WaitGroup
	done    chan struct{} // closes when the client disconnects or sends a close frame
	closed  chan struct{} // closes when the server closes the connection
	once    sync.Once
}

// read answers pings and close frames, and ignores everything else that the client sends.
func (s *wsSink) read() {
	defer close(s.done)
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

// closeOnStop closes the connection when the server stops, because net/http does not close hijacked connections.
func (s *wsSink) closeOnStop(stopped <-chan struct{}) {
	select {
	case <-stopped:
		s.close()
	case <-s.closed:
	}
}

func (s *wsSink) Send(frame []byte) error {
	return s.conn.WriteMessage(websocket.TextMessage, frame)
}

func (s *wsSink) Cut(part []byte)               { _ = s.Send(part) } // the watch ends in any case
func (s *wsSink) Flush()                        {}
func (s *wsSink) Listed()                       {}
func (s *wsSink) Disconnected() <-chan struct{} { return s.done }

// End sends a close frame with code 1000 and closes the connection.
func (s *wsSink) End() {
	text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second)) // the connection closes in any case
	s.close()
}

func (s *wsSink) Abort() {
	pipe.Reset(s.conn.NetConn())
	s.close()
}

func (s *wsSink) Release() {
	s.close()
	s.running.Wait()
}

func (s *wsSink) close() {
	s.once.Do(func() {
		_ = s.conn.Close() // the result no longer matters
		close(s.closed)
	})
}
