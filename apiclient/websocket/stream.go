package websocket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	ws "github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// keptBuffer is the largest buffer for binary messages that is kept after a message.
const keptBuffer = 16 << 10

// ErrProtocol is wrapped in errors about violations of RFC 6455 and about messages that cannot be those of one watch.
var ErrProtocol = errors.New("websocket: the server violated the protocol")

// stream turns the messages of a connection into the bytes of an HTTP watch: text messages one after the other, and
// binary messages with their length before them. One goroutine reads it.
type stream struct {
	conn   *ws.Conn
	wire   *wire
	pinger *pinger
	limit  int         // largest binary message in bytes
	stop   func() bool // ends the link between ctx and the connection

	binary  bool      // type of all messages; the first one decides
	message io.Reader // rest of the text message
	last    byte      // last byte of the text that is not white space; 0 at the beginning
	buffer  []byte    // for binary messages
	rest    []byte    // unread part of the binary message, in buffer
	err     error     // why the connection ended
}

// newStream starts the pings of a connection and blocks until its first message or its end. The end of ctx closes the
// connection until Close is called.
func newStream(ctx context.Context, conn *ws.Conn, w *wire, p keepAlive, limit int) *stream {
	s := &stream{conn: conn, wire: w, limit: limit, pinger: newPinger(p, conn, w)}
	s.stop = context.AfterFunc(ctx, func() { _ = w.Close() }) // the reader gets the error
	var kind int
	if kind, s.err = s.next(); s.err == nil {
		s.binary = kind == ws.BinaryMessage
		s.err = s.startMessage(kind)
	}
	return s
}

func (s *stream) mediaType() string {
	if s.binary {
		return "application/vnd.kubernetes.protobuf;stream=watch"
	}
	return "application/json;stream=watch"
}

// Close closes the connection and returns when nothing of the watch is left. It sends no close frame, because the write
// could block, and the end of the connection tells the server the same.
func (s *stream) Close() error {
	s.stop()
	_ = s.wire.Close() // may be closed already
	s.pinger.stop()
	return nil
}

func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil {
		if n := s.readMessage(p); n > 0 {
			return n, nil // the next Read returns the rest; a Read with bytes does not wait for a message
		}
		if s.err == nil {
			var kind int
			if kind, s.err = s.next(); s.err == nil {
				s.err = s.startMessage(kind)
			}
		}
	}
	return 0, s.err
}

// readMessage reads a part of the message. It returns 0 at the end.
func (s *stream) readMessage(p []byte) int {
	if s.binary {
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n
	}
	for {
		n, err := s.message.Read(p)
		switch {
		case n > 0:
			s.noteLast(p[:n])
			return n
		case err == io.EOF && s.last != 0 && s.last != '}':
			// Without this check, the reader would wait for the rest of the event in the next message.
			s.err = fmt.Errorf("websocket: a message ends inside an event: %w", io.ErrUnexpectedEOF)
			return 0
		case err == io.EOF:
			return 0
		case err != nil:
			s.err = s.closeReason(err)
			return 0
		}
	}
}

// noteLast records the last byte of a text that is not white space.
func (s *stream) noteLast(p []byte) {
	for _, c := range slices.Backward(p) {
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			s.last = c
			return
		}
	}
}

// next waits for the next message and returns its type.
func (s *stream) next() (kind int, err error) {
	kind, s.message, err = s.conn.NextReader()
	if err != nil {
		return 0, s.closeReason(err)
	}
	return kind, nil
}

// startMessage starts to read a message.
func (s *stream) startMessage(kind int) error {
	switch {
	case (kind == ws.BinaryMessage) != s.binary:
		return fmt.Errorf("%w: text and binary messages in one watch", ErrProtocol)
	case s.binary:
		return s.readBinary()
	}
	return nil
}

// readBinary reads a whole binary message, because its length comes first. For a message that is too large, it writes
// the largest possible length and no content; the reader of the frames then returns the same error as over HTTP.
func (s *stream) readBinary() error {
	if cap(s.buffer) > keptBuffer {
		s.buffer = nil
	}
	b := append(s.buffer[:0], 0, 0, 0, 0)
	for {
		if len(b)-4 > s.limit {
			s.rest = binary.BigEndian.AppendUint32(nil, math.MaxUint32)
			return nil
		}
		b = slices.Grow(b, 512)
		n, err := s.message.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			s.buffer, s.rest = b, b
			return nil
		}
		if err != nil {
			return s.closeReason(err)
		}
	}
}

// closeReason maps the end of a connection to the error of an HTTP watch: io.EOF for a regular end, a Status if the
// close code corresponds to one, io.ErrUnexpectedEOF for a lost connection, ErrProtocol for a violation.
func (s *stream) closeReason(err error) error {
	if silent := s.wire.silent.Load(); silent != nil {
		return silent
	}
	var closed *ws.CloseError
	switch {
	case errors.As(err, &closed) && s.wire.frames.shortCode:
		return fmt.Errorf("%w: a close frame with a content of one byte", ErrProtocol)
	case errors.As(err, &closed):
		return closeError(closed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errLost
	case errors.Is(err, ws.ErrReadLimit):
		return fmt.Errorf("%w: a message without an end", ErrProtocol)
	}
	if said, ok := strings.CutPrefix(err.Error(), "websocket: "); ok { // the library's errors have no types
		return fmt.Errorf("%w: %s", ErrProtocol, said)
	}
	return err
}

var errLost = fmt.Errorf("websocket: the connection was lost: %w", io.ErrUnexpectedEOF)

func closeError(e *ws.CloseError) error {
	switch e.Code {
	case ws.CloseNormalClosure, ws.CloseGoingAway, ws.CloseNoStatusReceived:
		return io.EOF
	case ws.CloseAbnormalClosure:
		return errLost
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
