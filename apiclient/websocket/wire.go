package websocket

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// silentError is a connection on which nothing came, not even the answer to a ping. It is a net.Error.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("websocket: nothing came for %v, not even the answer to a ping", e.after)
}

// Timeout says that it is one, as net.Error asks.
func (*silentError) Timeout() bool { return true }

// Temporary says that trying again may help, as net.Error asks.
func (*silentError) Temporary() bool { return true }

// wire is the connection of one watch: a net.Conn that shakes hands by way of a transport, and knows how long it has been
// waited for. It has no deadlines, because what a transport hands over has none: who gives up closes it, which ends every
// read and write.
type wire struct {
	shaking *handshake // nil once there is a connection
	head    []byte     // of the answer, still to be read
	conn    io.ReadWriteCloser
	frames  frames // of the reader alone

	begun            time.Time
	reading, writing atomic.Int64                // when the one that waits began to, after begun; 0 where none does
	silent           atomic.Pointer[silentError] // why the pulse has closed the connection
}

func (w *wire) dial(context.Context, string, string) (net.Conn, error) { return w, nil }

func (w *wire) Write(p []byte) (int, error) {
	if w.shaking != nil {
		return w.shaking.written.Write(p)
	}
	w.writing.Store(w.now())
	defer w.writing.Store(0)
	return w.conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	if w.shaking != nil {
		h := w.shaking
		if w.head, w.conn, h.err = h.answer(); h.err != nil {
			return 0, h.err
		}
		w.shaking = nil
	}
	if len(w.head) > 0 {
		n := copy(p, w.head)
		w.head = w.head[n:]
		return n, nil
	}
	w.head = nil
	w.reading.Store(w.now())
	defer w.reading.Store(0)
	n, err := w.conn.Read(p)
	w.frames.follow(p[:n])
	return n, err
}

// now is the time after begun, and never 0.
func (w *wire) now() int64 { return int64(time.Since(w.begun)) + 1 }

// silence says for how long a read or a write has been waiting. While the reader is busy with an event there is none,
// however long that takes.
func (w *wire) silence() time.Duration {
	longest := time.Duration(0)
	for _, since := range []*atomic.Int64{&w.reading, &w.writing} {
		if at := since.Load(); at > 0 {
			longest = max(longest, time.Duration(w.now()-at))
		}
	}
	return longest
}

// giveUp closes the connection and says why. Only the first call counts.
func (w *wire) giveUp(why *silentError) {
	w.silent.CompareAndSwap(nil, why)
	_ = w.Close() // whoever waits sees it
}

// Close ends whatever waits for the connection. It may be called more than once, and at the same time.
func (w *wire) Close() error {
	if w.conn == nil {
		return nil // the handshake failed
	}
	return w.conn.Close()
}

func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
