package testserver

import "sync"

// buffer holds the body of a request or of an answer, until the request ends. A write of 1 KiB makes less garbage by a
// tenth with it.
type buffer struct{ bytes []byte }

// maxBuffer is the size of the largest buffer that is kept. Few objects are larger.
const maxBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// release ends the use of the bytes. Decoded objects have copies, and so has an http.ResponseWriter after a Write
// without an error.
func (b *buffer) release() {
	if cap(b.bytes) <= maxBuffer {
		b.bytes = b.bytes[:0]
		buffers.Put(b)
	}
}
