package pipe

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is the size in bytes of the buffer of one direction. A writer blocks when it is full, as with a socket.
const bufferSize = 64 << 10

// stream is one direction of a connection: a ring of bytes between one reader and one writer. They block in a
// sync.Cond, because a synctest bubble counts that as durably blocked. A socket would stop the clock of the bubble;
// net.Pipe, which has no buffer, would deadlock if both ends write first, as in TLS.
type stream struct {
	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // uses mu
	ring    []byte     // nil until the first write
	start   int        // index of the oldest byte
	length  int        // number of buffered bytes

	writerDone   bool // the reader gets EOF after the buffered bytes
	writerClosed bool // the writer closed the whole connection
	readerClosed bool // the reader closed the connection: writes fail
	reset        bool // the connection was reset: both sides fail, the reader after the buffered bytes

	readLimit, writeLimit deadline
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

// deadline is the time after which a side does not wait. Its timer wakes the waiting side. The stream's mutex guards
// it.
type deadline struct {
	at    time.Time // zero means never
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// setDeadline moves a deadline and wakes the waiting side, because the new deadline may be earlier.
func (s *stream) setDeadline(d *deadline, at time.Time) {
	s.update(func(s *stream) {
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
		d.at = at
		if !at.IsZero() && !d.passed() {
			d.timer = time.AfterFunc(time.Until(at), func() { s.update(func(*stream) {}) })
		}
	})
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readerClosed:
			return 0, net.ErrClosed
		case s.readLimit.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.length > 0:
			return s.take(p), nil
		case s.reset:
			return 0, syscall.ECONNRESET
		case s.writerDone:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

// take moves buffered bytes into p.
func (s *stream) take(p []byte) int {
	taken := 0
	for taken < len(p) && s.length > 0 {
		n := copy(p[taken:], s.ring[s.start:min(s.start+s.length, len(s.ring))])
		s.start = (s.start + n) % len(s.ring)
		s.length -= n
		taken += n
	}
	s.changed.Broadcast()
	return taken
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.writerClosed:
			return written, net.ErrClosed
		case s.reset, s.readerClosed:
			return written, syscall.ECONNRESET
		case s.writerDone:
			return written, syscall.EPIPE
		case s.writeLimit.passed():
			return written, os.ErrDeadlineExceeded
		case written == len(p):
			return written, nil
		case s.length < bufferSize:
			written += s.put(p[written:])
			continue
		}
		s.changed.Wait()
	}
}

// put buffers as many bytes of p as fit.
func (s *stream) put(p []byte) int {
	if s.ring == nil {
		s.ring = make([]byte, bufferSize)
	}
	stored := 0
	for stored < len(p) && s.length < len(s.ring) {
		end := (s.start + s.length) % len(s.ring)
		room := len(s.ring) - end
		if end < s.start {
			room = s.start - end
		}
		n := copy(s.ring[end:end+room], p[stored:])
		s.length += n
		stored += n
	}
	s.changed.Broadcast()
	return stored
}

// update changes fields under the lock and wakes both sides.
func (s *stream) update(change func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	s.changed.Broadcast()
}
