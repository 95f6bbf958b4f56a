package scan

import (
	"io"
)

const (
	firstWindow = 2 << 10   // bytes of the first read: an event, because a program may have a thousand silent watches
	usualWindow = 16 << 10  // a window that a read fills doubles up to this size: a few objects
	keptWindow  = 256 << 10 // a larger buffer is released as soon as it is empty
)

// Window is the part of a stream that is in memory. It doubles as bytes arrive, up to limit bytes for one object. It
// never grows because of a length that the stream claims.
type Window struct {
	r      io.Reader
	buf    []byte
	lo, hi int   // buf[lo:hi] was read from r and not dropped yet
	off    int64 // position of buf[lo] in the stream
	limit  int
	err    error // the error with which r ended
}

// NewWindow returns the window of a stream.
func NewWindow(r io.Reader, limit int) Window { return Window{r: r, limit: limit} }

// Limit returns the largest size of one object, in bytes.
func (w *Window) Limit() int { return w.limit }

// Offset returns the position of the window in the stream.
func (w *Window) Offset() int64 { return w.off }

// Bytes returns the bytes in memory. They are valid until the next call of More.
func (w *Window) Bytes() []byte { return w.buf[w.lo:w.hi] }

// Drop drops the first n bytes.
func (w *Window) Drop(n int) {
	w.lo += n
	w.off += int64(n)
}

// More reads at least one byte and keeps the bytes that were not dropped. It returns the reader's error unchanged, also
// io.EOF.
func (w *Window) More() error {
	if w.err != nil {
		return w.err
	}
	if err := w.makeRoom(); err != nil {
		return err
	}
	for range 100 {
		n, err := w.r.Read(w.buf[w.hi:])
		w.hi += n
		w.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// Need returns the first n bytes of the window, or the error that kept them from arriving.
func (w *Window) Need(n int) ([]byte, error) {
	if n > w.limit {
		return nil, &TooLarge{Limit: w.limit}
	}
	for w.hi-w.lo < n {
		if err := w.More(); err == io.EOF {
			return nil, truncated(w.off + int64(w.hi-w.lo))
		} else if err != nil {
			return nil, err
		}
	}
	return w.buf[w.lo : w.lo+n], nil
}

// All returns everything up to the end of the stream.
func (w *Window) All() ([]byte, error) {
	for {
		switch err := w.More(); {
		case err == io.EOF:
			return w.Bytes(), nil
		case isTooLarge(err):
			return w.Bytes(), w.atEnd()
		case err != nil:
			return nil, err
		}
	}
}

// atEnd checks, when the window is full, whether the stream ends there.
func (w *Window) atEnd() error {
	var one [1]byte
	switch n, err := io.ReadFull(w.r, one[:]); {
	case n > 0:
		return &TooLarge{Limit: w.limit}
	case err == io.EOF:
		return nil
	default:
		return err
	}
}

func (w *Window) makeRoom() error {
	held := w.hi - w.lo
	switch {
	case held >= w.limit:
		return &TooLarge{Limit: w.limit}
	case held == 0 && (len(w.buf) == 0 || len(w.buf) > keptWindow):
		w.buf, w.lo, w.hi = make([]byte, min(firstWindow, w.limit)), 0, 0
	case held == 0 && w.hi == len(w.buf) && len(w.buf) < min(usualWindow, w.limit):
		w.buf, w.lo, w.hi = make([]byte, min(2*len(w.buf), w.limit)), 0, 0
	case held == 0:
		w.lo, w.hi = 0, 0
	case w.hi < len(w.buf):
	case held <= len(w.buf)/2:
		w.hi = copy(w.buf, w.buf[w.lo:w.hi])
		w.lo = 0
	default:
		grown := make([]byte, min(2*len(w.buf), w.limit))
		w.hi = copy(grown, w.buf[w.lo:w.hi])
		w.buf, w.lo = grown, 0
	}
	return nil
}
