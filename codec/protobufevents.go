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

func (c *protobufCodec) frames(a *answer) func(*api.Event[any]) (bool, error) {
	f := &protobufFrames{a, c.newObjects(a)}
	return f.next
}

// next reads one frame: four bytes of length, and a WatchEvent.
func (f *protobufFrames) next(to *api.Event[any]) (ok bool, err error) {
	w := &f.a.window
	if len(w.Bytes()) == 0 {
		if err := w.More(); err != nil {
			return false, err // also io.EOF: the stream ends between frames
		}
	}
	head, err := w.Need(4)
	if err != nil {
		return false, err
	}
	n := binary.BigEndian.Uint32(head)
	if int64(n) > int64(w.Limit()) {
		return false, &TooLargeError{Limit: w.Limit()}
	}
	w.Drop(4)
	frame, err := w.Need(int(n))
	if err != nil {
		return false, err
	}
	ok, err = f.read(to, frame)
	w.Drop(int(n))
	return ok, err
}

// read returns the event of a WatchEvent.
func (f *protobufFrames) read(to *api.Event[any], frame []byte) (ok bool, err error) {
	var name, object []byte
	for number, value, rest := wireplan.Field(frame); number != wireplan.Ended; number, value, rest = wireplan.Field(rest) {
		switch number {
		case 0:
			return false, malformed(f.a.window.Offset(), "watch event: %w", wireplan.ErrWire)
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
			return false, malformed(f.a.window.Offset(), "%w", err)
		}
	}
	f.object.r.Updates(is == watch.Modified)
	return f.a.event(to, is, &f.object, len(object))
}
