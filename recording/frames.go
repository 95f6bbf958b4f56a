package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// framer divides the bytes of an answer into records: those of a watch into whole frames, and those of a list as they
// arrive. It keeps the beginning of a frame that is not complete.
type framer struct {
	watch, protobuf bool
	tail            []byte
	done            int    // bytes of tail that add has returned
	frames          uint64 // complete frames so far
}

var errLargeFrame = errors.New("a frame is too large")

// add returns the bytes up to the end of the last complete frame. They are valid until the next call.
func (f *framer) add(piece []byte) (whole []byte, err error) {
	if !f.watch {
		return piece, nil
	}
	f.tail = append(f.tail[:0], f.rest()...)
	f.done = 0
	if len(f.tail) == 0 {
		n := f.complete(piece, 0)
		whole, f.tail = piece[:n], append(f.tail, piece[n:]...)
	} else {
		from := len(f.tail)
		f.tail = append(f.tail, piece...)
		f.done = f.complete(f.tail, from)
		whole = f.tail[:f.done]
	}
	if len(f.rest()) > maxRecord {
		return nil, errLargeFrame
	}
	return whole, nil
}

// rest returns the beginning of a frame that is not complete.
func (f *framer) rest() []byte { return f.tail[f.done:] }

// complete returns the number of bytes that the whole frames in b have. The bytes before from end no frame.
func (f *framer) complete(b []byte, from int) (n int) {
	if !f.protobuf {
		fresh := b[from:]
		f.frames += uint64(bytes.Count(fresh, []byte{'\n'}))
		if n = bytes.LastIndexByte(fresh, '\n') + 1; n > 0 {
			n += from
		}
		return n
	}
	for len(b)-n >= 4 {
		size := int(binary.BigEndian.Uint32(b[n:]))
		if size > len(b)-n-4 {
			break
		}
		n += 4 + size
		f.frames++
	}
	return n
}
