package wireplan

import "github.com/leatproject/leat/codec/internal/plan"

// Reader decodes the messages of one answer into the fields of structs. It belongs to one goroutine.
type Reader struct {
	plan.Texts
	scratch plan.Scratch
	depth   int
	breaks  breaks
	parts   *plan.Parts // nil if objects share nothing; the fields below are of no use then
	hasher  *plan.Hasher
	structs uint64 // the structs of the object that were set, by the numbers of their fields
	// quantities counts the quantities that a program can refer to. Objects do not share them: their String stores what
	// it returns.
	quantities int
	checked    any // for Plan.Check, which alone names the type: programs that do not call it do not link the type
}

// NewReader returns a Reader. It calls ended while it decodes a large message, and stops with the error that ended
// returns.
func NewReader(strings *plan.Interner, ended func() error) Reader {
	return Reader{Texts: plan.NewTexts(strings), breaks: breaks{ended: ended}}
}

// bytesBetweenBreaks is the number of bytes between two looks at the context. A field has at least two bytes, so they
// take one or two milliseconds, and an ordinary object is decoded without a look.
const bytesBetweenBreaks = 64 << 10

// breaks looks at the context while a large message is being decoded. Reason: 16 MiB of small values take a few hundred
// milliseconds. Price: one comparison per field. It counts nothing: all unread bytes are the end of one slice, so their
// capacity is the position of the reader.
type breaks struct {
	ended func() error
	low   int // the capacity below which pause looks again
}

// begin starts with another message.
func (w *breaks) begin(message []byte) { w.low = cap(message) - bytesBetweenBreaks }

// pause looks at the context if it is time. rest are unread bytes.
func (w *breaks) pause(rest []byte) error {
	if cap(rest) >= w.low {
		return nil
	}
	w.low = cap(rest) - bytesBetweenBreaks
	return w.ended()
}
