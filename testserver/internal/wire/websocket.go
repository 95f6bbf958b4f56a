package wire

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leatproject/leat/internal/pipe"
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

// bearerProtocol begins a sub-protocol that contains a bearer token in base64url. Scripts of web pages send it, because
// they cannot set headers.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// BearerToken returns the bearer token of a request: that of its header or, for a WebSocket, that of a sub-protocol. It
// is empty if there is no token. A sub-protocol counts only if the client offers another one that can be echoed.
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return token
	}
	if !isWebSocket(r) || len(protocolsOf(r)) == 0 {
		return ""
	}
	for _, p := range websocket.Subprotocols(r) {
		if encoded, ok := strings.CutPrefix(p, bearerProtocol); ok {
			token, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil {
				return "" // a malformed token is no token
			}
			return string(token)
		}
	}
	return ""
}

// protocolsOf returns the sub-protocols that a client offers, without its token.
func protocolsOf(r *http.Request) []string {
	return slices.DeleteFunc(websocket.Subprotocols(r), func(p string) bool { return strings.HasPrefix(p, bearerProtocol) })
}

// upgrade performs the handshake as kube-apiserver does. A missing or malformed Origin gets 403, and more than one
// sub-protocol besides that of a token gets 400, both with an empty body. A single sub-protocol is echoed. If upgrade
// rejects the handshake, it answers the request and returns nil.
func upgrade(w http.ResponseWriter, r *http.Request, binary bool) Sink {
	if _, err := url.ParseRequestURI(r.Header.Get("Origin")); err != nil {
		w.WriteHeader(http.StatusForbidden)
		return nil
	}
	protocols := protocolsOf(r)
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
	s := &wsSink{conn: conn, binary: binary, done: make(chan struct{}), closed: make(chan struct{})}
	s.running.Go(s.read)
	s.running.Go(func() { s.closeOnStop(r.Context().Done()) })
	return s
}

// wsSink sends each frame as a message: JSON as text, and protobuf as binary data without its length. It has two
// goroutines; release waits for them.
type wsSink struct {
	conn    *websocket.Conn
	binary  bool
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
	if s.binary {
		return s.conn.WriteMessage(websocket.BinaryMessage, frame[frameLength:])
	}
	return s.conn.WriteMessage(websocket.TextMessage, frame)
}

func (s *wsSink) Cut(frame []byte, bytes int) {
	if s.binary {
		bytes = frameLength + min(max(bytes, 0), len(frame)) // the message has no length
	}
	_ = s.Send(firstBytes(frame, bytes)) // the watch ends in any case
}

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
