package codec

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// jsonFrames reads the frames of a watch in JSON.
type jsonFrames struct {
	a       *answer
	scanner scanner
	name    watch.EventType // of the current frame
	object  jsonObject
}

func (c *jsonCodec) frames(a *answer) func() (api.Event[any], bool, error) {
	f := &jsonFrames{a: a, scanner: *newScanner(a.ended, &a.window), object: c.newObject(a)}
	return f.next
}

// next reads one frame. It first drops the rest of the previous frame, so the window holds only the current frame.
func (f *jsonFrames) next() (event api.Event[any], ok bool, err error) {
	s := &f.scanner
	s.held = false
	i, err := s.space(0)
	if err != nil {
		return event, false, err
	}
	s.drop(i)
	s.held = true
	f.name = ""
	f.object.outline.reset()
	end, err := s.object(0, f.member)
	if err != nil {
		return event, false, err
	}
	f.object.set(s.b)
	event, ok, err = f.a.event(f.name, &f.object, f.object.size())
	s.drop(end)
	return event, ok, err
}

// member reads one member of a frame, whose value begins at or after i.
func (f *jsonFrames) member(name []byte, i int) (int, error) {
	i, err := f.scanner.next(i)
	if err != nil {
		return i, err
	}
	switch string(name) {
	case "type":
		end, err := f.scanner.value(i, nil)
		if err == nil {
			f.name = eventName(textOf(f.scanner.b[i:end]))
		}
		return end, err
	case "object":
		f.object.outline.reset()
		return f.scanner.value(i, &f.object.outline)
	default:
		return f.scanner.value(i, nil)
	}
}

// size returns the number of bytes of the object; 0 means that the frame has none.
func (o *jsonObject) size() int {
	c := o.outline.at(o.b)
	if len(c.tokens) == 0 {
		return 0
	}
	return len(c.raw())
}
