package scan

// betweenBreaks is the number of tokens of JSON between two looks at the context. An ordinary object has fewer tokens
// and is decoded without a look. So many tokens take one or two milliseconds.
const betweenBreaks = 4 << 10

// Breaks looks at the context while a large object is being decoded. Reason: 16 MiB of small values take a few hundred
// milliseconds. Price: one comparison per value.
type Breaks struct {
	ended func() error // Err of the context; nil if it never ends
	next  int          // the number of the token at which look is called again
}

// NewBreaks returns breaks that look at ended, which is the Err of a context, or nil if it never ends.
func NewBreaks(ended func() error) Breaks { return Breaks{ended: ended} }

// Begin starts at token 0, for another object.
func (b *Breaks) Begin() { b.next = betweenBreaks }

// look returns the error of the context if it has ended. n is the number of the current token. look is not inlined, so
// that Pause can be.
//
//go:noinline
func (b *Breaks) look(n int) error {
	b.next = n + betweenBreaks
	if b.ended == nil {
		return nil
	}
	return b.ended()
}

// Pause calls look if it is time. n is the number of the current token.
func (b *Breaks) Pause(n int) error {
	if n < b.next {
		return nil
	}
	return b.look(n)
}
