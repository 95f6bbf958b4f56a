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

// keptBuffer is how much of the buffer for binary messages outlives a message.
const keptBuffer = 16 << 10

// ErrProtocol matches every violation of RFC 6455, and messages that cannot be those of one watch.
var ErrProtocol = errors.New("websocket: the server broke the protocol")

// stream makes of the messages of a connection the bytes that an HTTP watch would have: texts one after the other, and
// before each binary message its length. One goroutine reads it.
type stream struct {
	conn  *ws.Conn
	wire  *wire
	heart *heart
	limit int         // bytes of a binary message
	stop  func() bool // no longer close the connection with the context

	binary  bool      // the type of all messages, which is that of the first
	message io.Reader // the rest of the text
	last    byte      // of the texts so far that is no space; 0 where there is none
	buffer  []byte    // for binary messages
	rest    []byte    // of the binary message, in buffer
	err     error     // what ended the connection
}

// newStream starts to watch over a connection, and blocks until its first message or its end. Until Close the connection
// is closed with ctx.
func newStream(ctx context.Context, conn *ws.Conn, w *wire, p pulse, limit int) *stream {
	s := &stream{conn: conn, wire: w, limit: limit, heart: newHeart(p, conn, w)}
	s.stop = context.AfterFunc(ctx, func() { _ = w.Close() }) // the reader sees it
	var kind int
	if kind, s.err = s.next(); s.err == nil {
		s.binary = kind == ws.BinaryMessage
		s.err = s.begin(kind)
	}
	return s
}

func (s *stream) mediaType() string {
	if s.binary {
		return "application/vnd.kubernetes.protobuf;stream=watch"
	}
	return "application/json;stream=watch"
}

// Close closes the connection and returns when nothing of the watch is left. It sends no close frame, which could block,
// and which says nothing to a server that a connection's end does not say.
func (s *stream) Close() error {
	s.stop()
	_ = s.wire.Close() // it may be closed already
	s.heart.stop()
	return nil
}

func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil {
		if n := s.take(p); n > 0 {
			return n, nil // whatever else there is comes with the next Read, and no message is awaited while there are bytes
		}
		if s.err == nil {
			var kind int
			if kind, s.err = s.next(); s.err == nil {
				s.err = s.begin(kind)
			}
		}
	}
	return 0, s.err
}

// take reads of the message. At its end it returns 0.
func (s *stream) take(p []byte) int {
	if s.binary {
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n
	}
	for {
		n, err := s.message.Read(p)
		switch {
		case n > 0:
			s.note(p[:n])
			return n
		case err == io.EOF && s.last != 0 && s.last != '}':
			// Were it not for this, the rest would be awaited in the next message, which may be long in coming.
			s.err = fmt.Errorf("websocket: a message ends inside an event: %w", io.ErrUnexpectedEOF)
			return 0
		case err == io.EOF:
			return 0
		case err != nil:
			s.err = s.endOf(err)
			return 0
		}
	}
}

// note remembers the last byte of a text that is no space.
func (s *stream) note(p []byte) {
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
		return 0, s.endOf(err)
	}
	return kind, nil
}

// begin begins a message.
func (s *stream) begin(kind int) error {
	switch {
	case (kind == ws.BinaryMessage) != s.binary:
		return fmt.Errorf("%w: text and binary messages in one watch", ErrProtocol)
	case s.binary:
		return s.fill()
	}
	return nil
}

// fill reads a binary message whole, because its length comes first. One that is too large gets the largest length that
// there is, and no content: it is for the reader of the frames to refuse it, as it would over HTTP.
func (s *stream) fill() error {
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
			return s.endOf(err)
		}
	}
}

// endOf says in the words of an HTTP watch how a connection ended: io.EOF for the end in good order, a Status where the
// code says what a Status could say, io.ErrUnexpectedEOF for a connection that broke off, ErrProtocol for nonsense.
func (s *stream) endOf(err error) error {
	if silent := s.wire.silent.Load(); silent != nil {
		return silent
	}
	var closed *ws.CloseError
	switch {
	case errors.As(err, &closed) && s.wire.frames.halfCode:
		return fmt.Errorf("%w: a close frame of one byte, which is no code", ErrProtocol)
	case errors.As(err, &closed):
		return closeError(closed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errBrokeOff
	case errors.Is(err, ws.ErrReadLimit):
		return fmt.Errorf("%w: a message without end", ErrProtocol)
	}
	if said, ok := strings.CutPrefix(err.Error(), "websocket: "); ok { // the library's own errors have no type
		return fmt.Errorf("%w: %s", ErrProtocol, said)
	}
	return err
}

var errBrokeOff = fmt.Errorf("websocket: the connection broke off: %w", io.ErrUnexpectedEOF)

func closeError(e *ws.CloseError) error {
	switch e.Code {
	case ws.CloseNormalClosure, ws.CloseGoingAway, ws.CloseNoStatusReceived:
		return io.EOF
	case ws.CloseAbnormalClosure:
		return errBrokeOff
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
