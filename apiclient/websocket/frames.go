package websocket

import "encoding/binary"

// frames parses the heads of a connection's frames up to the close frame, to find a close frame with a content of one
// byte. RFC 6455 (5.5.1) forbids it, but the library treats it as an empty one, which is a regular end. It costs a few
// instructions per frame.
type frames struct {
	head    [2 + 8]byte // of the current frame, at most the parts that are needed
	n       int         // number of bytes in head
	content uint64      // bytes of the content that are not skipped yet
	ended   bool        // the close frame was found
	// shortCode reports that the close frame has a content of one byte.
	shortCode bool
}

// follow parses the bytes p of the connection.
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
		f.startContent()
	}
}

// startContent starts to skip the content of a frame if its head is complete. A server must not mask (5.1); the library
// checks that.
func (f *frames) startContent() {
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
	f.shortCode = f.ended && length == 1
	f.n, f.content = 0, length
}
