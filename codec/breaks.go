package codec

const (
	// betweenBreaks is the number of tokens of JSON between two looks at the context. An ordinary object has fewer
	// tokens and is decoded without a look. So many tokens take one or two milliseconds.
	betweenBreaks = 4 << 10
	// bytesBetweenBreaks is the same for protobuf. A field has at least two bytes.
	bytesBetweenBreaks = 64 << 10
)

// breaks looks at the context while a large object is being decoded. Reason: 16 MiB of small values take a few hundred
// milliseconds. Price: one comparison per value.
type breaks struct {
	ended func() error // Err of the context; nil if it never ends
	next  int          // the number of the token at which look is called again
}

// begin starts at token 0, for another object.
func (b *breaks) begin() { b.next = betweenBreaks }

// look returns the error of the context if it has ended. n is the number of the current token. look is not inlined, so
// that pause can be.
//
//go:noinline
func (b *breaks) look(n int) error {
	b.next = n + betweenBreaks
	if b.ended == nil {
		return nil
	}
	return b.ended()
}

// pause calls look if it is time. n is the number of the current token.
func (b *breaks) pause(n int) error {
	if n < b.next {
		return nil
	}
	return b.look(n)
}

// wireBreaks is breaks for a message. It counts nothing: all unread bytes are the end of one slice, so their capacity
// is the position of the reader.
type wireBreaks struct {
	ended func() error
	low   int // the capacity below which pause looks again
}

// begin starts with another message.
func (w *wireBreaks) begin(message []byte) { w.low = cap(message) - bytesBetweenBreaks }

// pause looks at the context if it is time. rest are unread bytes.
func (w *wireBreaks) pause(rest []byte) error {
	if cap(rest) >= w.low {
		return nil
	}
	w.low = cap(rest) - bytesBetweenBreaks
	return w.ended()
}
