package recording

import (
	"errors"
	"io"
	"iter"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/observe/recording/internal/frame"
)

// decoding decodes one stream while its records are read. The decoder runs in a coroutine, because it reads and the
// loader feeds: it is resumed for each record, and paused when it needs more.
type decoding[T api.Object] struct {
	loader   *loader[T]
	stream   *Stream
	kind     *kind[T]
	scope    *scopeState
	progress *Scope
	now      time.Time       // of the current record
	initial  bool            // a WatchList before its bookmark
	items    []*codec.Packed // of this WatchList, until its bookmark
	broken   bool            // records are missing
	over     bool

	head   []byte // the beginning of the stream, until the kind is known
	rest   []byte // of the current record
	ended  error  // what a Read returns after the last record; nil before it
	resume func() (struct{}, bool)
	stop   func()
	pause  func(struct{}) bool
}

var errStopped = errors.New("recording: the loader has stopped")

// start makes the coroutine.
func (d *decoding[T]) start() {
	d.count(1)
	d.resume, d.stop = iter.Pull(iter.Seq[struct{}](func(pause func(struct{}) bool) {
		d.pause = pause
		err := d.decode()
		d.over = true
		d.count(-1)
		if d.reportable(err) {
			d.loader.note("%s at %s: %v", d.stream.Resource(), d.now.Format(noteTime), err)
		}
	}))
}

// count changes the number of open streams.
func (d *decoding[T]) count(n int) {
	l, key := d.loader, d.stream.scope()
	l.running += n
	if q, known := l.requests[key]; known {
		q.open += n
		l.requests[key] = q
	}
}

// reportable reports whether an error says more than that the answer ended early. The server ends a watch with a Status
// when a version has expired, and the client knows what to do.
func (d *decoding[T]) reportable(err error) bool {
	var media *codec.MediaTypeError
	var malformed *codec.MalformedError
	return errors.As(err, &media) || errors.As(err, &malformed) && d.ended == nil
}

// feed passes the data of a record to the decoder.
func (d *decoding[T]) feed(data []byte) {
	d.sniff(data)
	d.rest = data
	d.resume()
}

// maxHead is the number of bytes in which the kind is searched.
const maxHead = 4096

// sniff finds the kind of the resource in the first bytes of the stream.
func (d *decoding[T]) sniff(b []byte) {
	kind := &d.kind.resource.Kind
	if *kind != "" && (*kind != asMetadata || d.stream.partial()) || len(d.head) >= maxHead {
		return
	}
	d.head = append(d.head, b[:min(len(b), maxHead-len(d.head))]...)
	if name := frame.Kind(d.head, d.stream.Watch, d.stream.protobuf()); name != "" {
		*kind = name
	}
}

// end ends the data. A nil error is a regular end.
func (d *decoding[T]) end(err error) {
	if d.over {
		return
	}
	if d.ended = err; err == nil {
		d.ended = io.EOF
	}
	d.resume()
	d.over = true
	d.stop()
}

// Read returns the rest of the current record, or pauses until there is another one.
func (d *decoding[T]) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.ended != nil {
			return 0, d.ended
		}
		if !d.pause(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}
