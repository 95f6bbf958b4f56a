package websocket

import "encoding/binary"

// frames follows the frames of a connection up to the close frame, to find a close frame of one byte. RFC 6455 (5.5.1)
// wants none or two and more; the library takes one byte for none, and so for an end in good order. It looks at heads
// alone and costs a few instructions a frame.
type frames struct {
	head    [2 + 8]byte // of the frame that is being read: at most that much of it counts
	n       int         // how much of head there is
	content uint64      // that is still to be passed by
	ended   bool        // the close frame was there
	// halfCode says that it has a content of one byte.
	halfCode bool
}

// follow goes on with p, which is what was read next.
func (f *frames) follow(p []byte) {
	for len(p) > 0 && !f.ended {
		if f.content > 0 {
			n := min(f.content, uint64(len(p)))
			f.content -= n
			p = p[n:]
			continue
		}
		f.head[f.n] = p[0]
		f.n++
		p = p[1:]
		f.begin()
	}
}

// begin begins the content of a frame if its head is complete. A server masks nothing (5.1); the library refuses it if it
// does.
func (f *frames) begin() {
	if f.n < 2 {
		return
	}
	const closing, longLength, longerLength = 8, 126, 127
	length := uint64(f.head[1] & 0x7f)
	switch {
	case length == longLength && f.n == 2+2:
		length = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case length == longerLength && f.n == 2+8:
		length = binary.BigEndian.Uint64(f.head[2:])
	case length >= longLength:
		return
	}
	f.ended = f.head[0]&0x0f == closing
	f.halfCode = f.ended && length == 1
	f.n, f.content = 0, length
}
