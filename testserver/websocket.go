package testserver

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
// answers the request and returns a nil sink without an error.
func (x *call) upgrade() (sink, error) {
	if _, err := url.ParseRequestURI(x.http.Header.Get("Origin")); err != nil {
		x.w.WriteHeader(http.StatusForbidden)
		return nil, nil
	}
	protocols := websocket.Subprotocols(x.http)
	if len(protocols) > 1 {
		x.w.WriteHeader(http.StatusBadRequest)
		return nil, nil
	}
	upgrader := websocket.Upgrader{
		Subprotocols: protocols,
		CheckOrigin:  func(*http.Request) bool { return true },
		Error:        func(w http.ResponseWriter, _ *http.Request, code int, _ error) { w.WriteHeader(code) },
	}
	conn, err := upgrader.Upgrade(x.w, x.http, nil)
	if err != nil {
		return nil, nil // the upgrader has answered
	}
	s := &wsSink{conn: conn, done: make(chan struct{}), closed: make(chan struct{})}
	s.running.Go(s.read)
	s.running.Go(func() { s.closeOnStop(x.http.Context().Done()) })
	return s, nil
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

func (s *wsSink) send(frame []byte) error {
	return s.conn.WriteMessage(websocket.TextMessage, frame)
}

func (s *wsSink) cut(part []byte)               { _ = s.send(part) } // the watch ends in any case
func (s *wsSink) flush()                        {}
func (s *wsSink) listed()                       {}
func (s *wsSink) disconnected() <-chan struct{} { return s.done }

// end sends a close frame with code 1000 and closes the connection.
func (s *wsSink) end() {
	text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second)) // the connection closes in any case
	s.close()
}

func (s *wsSink) abort() {
	pipe.Reset(s.conn.NetConn())
	s.close()
}

func (s *wsSink) release() {
	s.close()
	s.running.Wait()
}

func (s *wsSink) close() {
	s.once.Do(func() {
		_ = s.conn.Close() // the result no longer matters
		close(s.closed)
	})
}
