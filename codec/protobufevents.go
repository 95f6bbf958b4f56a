package codec

import (
	"encoding/binary"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// protobufFrames reads the frames of a watch in protobuf.
type protobufFrames struct {
	a      *answer
	object protobufObject // of the current frame
}

func (c *protobufCodec) frames(a *answer) func() (api.Event[any], bool, error) {
	f := &protobufFrames{a, c.newObjects(a)}
	return f.next
}

// next reads one frame: four bytes of length, and a WatchEvent.
func (f *protobufFrames) next() (event api.Event[any], ok bool, err error) {
	w := &f.a.window
	if w.hi == w.lo {
		if err := w.more(); err != nil {
			return event, false, err // also io.EOF: the stream ends between frames
		}
	}
	head, err := w.need(4)
	if err != nil {
		return event, false, err
	}
	n := binary.BigEndian.Uint32(head)
	if int64(n) > int64(w.limit) {
		return event, false, &TooLargeError{Limit: w.limit}
	}
	w.drop(4)
	frame, err := w.need(int(n))
	if err != nil {
		return event, false, err
	}
	event, ok, err = f.read(frame)
	w.drop(int(n))
	return event, ok, err
}

// read returns the event of a WatchEvent.
func (f *protobufFrames) read(frame []byte) (event api.Event[any], ok bool, err error) {
	var name, object []byte
	for number, value, rest := wireplan.Field(frame); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case 0:
			return event, false, malformed(f.a.window.off, "watch event: %w", wireplan.ErrWire)
		case eventType:
			name = value
		case eventObject:
			for number, value, rest := wireplan.Field(value); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
				if number == rawExtensionRaw {
					object = value
				}
			}
		}
	}
	is := eventName(name)
	if err := f.object.open(object); err != nil {
		switch is {
		case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
			return event, false, malformed(f.a.window.off, "%w", err)
		}
	}
	return f.a.event(is, &f.object, len(object))
}
