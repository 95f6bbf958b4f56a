package websocket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	ws "github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// A server that does not answer a ping for pingTimeout is gone. These are the times of the HTTP/2 transport.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second

	// maxMessage bounds one event. Servers refuse objects of more than 3 MiB.
	maxMessage = 16 << 20
)

// ErrTooLarge is a message of more than 16 MiB. It ends the watch.
var ErrTooLarge = errors.New("websocket: message larger than 16 MiB")

// silentError is a connection on which nothing came, not even the answer to a ping. It is a net.Error.
type silentError struct{}

func (silentError) Error() string {
	return fmt.Sprintf("websocket: nothing came for %v, not even the answer to a ping", pingAfter+pingTimeout)
}

// Timeout says that it is one, as net.Error asks.
func (silentError) Timeout() bool { return true }

// Temporary says that trying again may help, as net.Error asks.
func (silentError) Temporary() bool { return true }

// stream makes of the messages of a connection the bytes that an HTTP watch would have: texts one after the other, and
// before each binary message its length. One goroutine reads it.
type stream struct {
	conn    *ws.Conn
	binary  bool // the type of all messages, which is that of the first
	message io.Reader
	json    nesting // of the texts so far
	err     error   // what ended the connection

	stop   func()         // no longer close the connection with the context
	closed chan struct{}  // ends the pinger
	once   sync.Once      // of closing
	pinger sync.WaitGroup // is what Close waits for
}

// newStream starts to watch over a connection, and blocks until its first message or its end. Until stop is called the
// connection is closed with the request's context.
func newStream(conn *ws.Conn, stop func()) *stream {
	s := &stream{conn: conn, stop: stop, closed: make(chan struct{})}
	conn.SetReadLimit(maxMessage)
	conn.SetPongHandler(func(string) error {
		s.alive()
		return nil
	})
	s.alive()
	s.pinger.Go(s.ping)
	s.err = s.next(true)
	return s
}

func (s *stream) mediaType() string {
	if s.binary {
		return "application/vnd.kubernetes.protobuf;stream=watch"
	}
	return "application/json;stream=watch"
}

// alive moves the time at which the connection is given up.
func (s *stream) alive() {
	_ = s.conn.SetReadDeadline(time.Now().Add(pingAfter + pingTimeout)) // on a closed connection the next read says so
}

// ping asks now and then whether the server is there. Its answer, or the lack of one, is seen by the reader.
func (s *stream) ping() {
	ticker := time.NewTicker(pingAfter)
	defer ticker.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-ticker.C:
			if s.conn.WriteControl(ws.PingMessage, nil, time.Now().Add(pingTimeout)) != nil {
				return // the reader will see what is wrong
			}
		}
	}
}

// Close closes the connection and returns when the pinger is gone.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.stop()
		close(s.closed)
		_ = s.conn.Close() // it may be closed already, by the context
		s.pinger.Wait()
	})
	return nil
}

func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil {
		n, err := s.message.Read(p)
		if n > 0 {
			if !s.binary {
				s.json.add(p[:n])
			}
			return n, nil // an error comes again with the next Read, and no message is awaited while there are bytes
		}
		switch {
		case err == io.EOF && s.json.open():
			s.err = fmt.Errorf("websocket: a message ends inside an event: %w", io.ErrUnexpectedEOF)
		case err == io.EOF:
			s.err = s.next(false)
		case err != nil:
			s.err = endOf(err)
		}
	}
	return 0, s.err
}

// next waits for the next message.
func (s *stream) next(first bool) error {
	kind, r, err := s.conn.NextReader()
	if err != nil {
		return endOf(err)
	}
	s.alive()
	isBinary := kind == ws.BinaryMessage
	if first {
		s.binary = isBinary
	}
	if isBinary != s.binary {
		return errors.New("websocket: text and binary messages in one watch")
	}
	if !isBinary {
		s.message = r
		return nil
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return endOf(err)
	}
	length := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	s.message = io.MultiReader(bytes.NewReader(length), bytes.NewReader(body))
	return nil
}

// endOf says in the words of an HTTP watch how a connection ended: io.EOF for the end in good order, a Status where the
// code says what a Status could say, io.ErrUnexpectedEOF for the rest.
func endOf(err error) error {
	var closed *ws.CloseError
	var timeout net.Error
	switch {
	case errors.As(err, &closed):
		return closeError(closed)
	case errors.Is(err, ws.ErrReadLimit):
		return ErrTooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		return silentError{}
	}
	return err
}

func closeError(e *ws.CloseError) error {
	switch e.Code {
	case ws.CloseNormalClosure, ws.CloseGoingAway, ws.CloseNoStatusReceived:
		return io.EOF
	case ws.CloseAbnormalClosure:
		return fmt.Errorf("websocket: the connection broke off: %w", io.ErrUnexpectedEOF)
	case ws.CloseInternalServerErr:
		return apierrors.NewInternalError(errors.New(reason(e)))
	case ws.CloseServiceRestart, ws.CloseTryAgainLater:
		return apierrors.NewServiceUnavailable(reason(e))
	}
	return fmt.Errorf("websocket: %s: %w", reason(e), io.ErrUnexpectedEOF)
}

func reason(e *ws.CloseError) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, e.Text)
	if text == "" {
		return fmt.Sprintf("the server closed the connection with code %d", e.Code)
	}
	return fmt.Sprintf("the server closed the connection with code %d: %s", e.Code, text)
}

// nesting follows JSON as far as is needed to tell whether a message ends where an event does. Without it a message that
// was cut could go on in the next, as nothing but messages tells them apart.
type nesting struct {
	depth             int
	inString, escaped bool
}

func (n *nesting) add(p []byte) {
	for _, c := range p {
		switch {
		case n.escaped:
			n.escaped = false
		case n.inString:
			n.escaped, n.inString = c == '\\', c != '"'
		case c == '"':
			n.inString = true
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			n.depth--
		}
	}
}

func (n *nesting) open() bool { return n.depth > 0 || n.inString }
