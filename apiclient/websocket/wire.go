package websocket

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// silentError is a connection on which nothing arrived after a ping. It is a net.Error.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("websocket: no data for %v, and no answer to a ping", e.after)
}

// Timeout is true. It is part of net.Error.
func (*silentError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*silentError) Temporary() bool { return true }

// wire is the net.Conn of one watch. It does the handshake with a transport, and measures how long reads and writes
// wait. It has no deadlines, because the connections of a transport have none. Close ends all reads and writes.
type wire struct {
	handshake *handshake // nil after the handshake
	head      []byte     // unread part of the answer's head
	conn      io.ReadWriteCloser
	frames    frames // used only by the reader

	begun            time.Time
	reading, writing atomic.Int64                // when the waiting read or write began, relative to begun; 0 if nothing waits
	silent           atomic.Pointer[silentError] // why pinger has closed the connection
}

func (w *wire) dial(context.Context, string, string) (net.Conn, error) { return w, nil }

func (w *wire) Write(p []byte) (int, error) {
	if w.handshake != nil {
		return w.handshake.written.Write(p)
	}
	w.writing.Store(w.now())
	defer w.writing.Store(0)
	return w.conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	if w.handshake != nil {
		h := w.handshake
		if w.head, w.conn, h.err = h.answer(); h.err != nil {
			return 0, h.err
		}
		w.handshake = nil
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

// now returns the time since begun. It is never 0.
func (w *wire) now() int64 { return int64(time.Since(w.begun)) + 1 }

// silence returns the duration of the longest waiting read or write. It is zero while the reader handles an event.
func (w *wire) silence() time.Duration {
	longest := time.Duration(0)
	for _, since := range []*atomic.Int64{&w.reading, &w.writing} {
		if at := since.Load(); at > 0 {
			longest = max(longest, time.Duration(w.now()-at))
		}
	}
	return longest
}

// giveUp closes the connection with a reason. Only the first call has an effect.
func (w *wire) giveUp(why *silentError) {
	w.silent.CompareAndSwap(nil, why)
	_ = w.Close() // waiting reads and writes return
}

// Close ends all reads and writes. It may be called more than once, also concurrently.
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
