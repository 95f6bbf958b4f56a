package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// MaxSize limits the bytes of a frame. It is above the largest frame that package codec reads.
const MaxSize = 24 << 20

// Divider divides the bytes of an answer into records: those of a watch into whole frames, and those of a list as they
// arrive. It keeps the beginning of a frame that is not complete.
type Divider struct {
	Watch, Protobuf bool
	Frames          uint64 // complete frames so far

	tail, finished []byte // the beginning of a frame, and the last one that began in an earlier piece
}

// ErrTooLarge is the error of a frame of more than MaxSize bytes.
var ErrTooLarge = errors.New("a frame is too large")

// Add returns whole frames: the one that earlier pieces began, and then those of this piece. Only the first one, and
// what follows the last one, are copied. Both results are valid until the next call.
func (f *Divider) Add(piece []byte) (first, whole []byte, err error) {
	if !f.Watch {
		return nil, piece, nil
	}
	if len(f.tail) > 0 {
		n, complete := f.finish(piece)
		f.tail = append(f.tail, piece[:n]...)
		switch {
		case len(f.tail) > MaxSize:
			return nil, nil, ErrTooLarge
		case !complete:
			return nil, nil, nil
		}
		f.Frames++
		first, piece = f.tail, piece[n:]
		f.tail, f.finished = f.finished[:0], f.tail
	}
	n := f.complete(piece)
	if len(piece)-n > MaxSize {
		return nil, nil, ErrTooLarge
	}
	f.tail = append(f.tail, piece[n:]...)
	return first, piece[:n], nil
}

// Rest returns the beginning of a frame that is not complete.
func (f *Divider) Rest() []byte { return f.tail }

// finish returns the number of bytes of a piece that belong to the frame in tail, and whether it is then complete.
func (f *Divider) finish(piece []byte) (n int, complete bool) {
	if !f.Protobuf {
		n = bytes.IndexByte(piece, '\n') + 1
		if n == 0 {
			return len(piece), false
		}
		return n, true
	}
	head := append(append(make([]byte, 0, 8), f.tail[:min(4, len(f.tail))]...), piece[:min(4, len(piece))]...)
	if len(head) < 4 {
		return len(piece), false
	}
	size := frameSize(head) - len(f.tail)
	return min(size, len(piece)), size <= len(piece)
}

// frameSize returns the size of a frame in protobuf, which begins with the length of the rest.
func frameSize(head []byte) int {
	return 4 + int(min(uint64(binary.BigEndian.Uint32(head)), 2*MaxSize)) // it also fits on 32 bits
}

// complete returns the number of bytes that the whole frames at the beginning of b have.
func (f *Divider) complete(b []byte) (n int) {
	if !f.Protobuf {
		n = bytes.LastIndexByte(b, '\n') + 1
		f.Frames += uint64(bytes.Count(b[:n], []byte{'\n'}))
		return n
	}
	for len(b)-n >= 4 {
		size := int64(binary.BigEndian.Uint32(b[n:]))
		if size > int64(len(b)-n-4) {
			break
		}
		n += 4 + int(size)
		f.Frames++
	}
	return n
}
