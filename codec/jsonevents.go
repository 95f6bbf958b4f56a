package codec

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/scan"
)

// jsonFrames reads the frames of a watch in JSON.
type jsonFrames struct {
	a       *answer
	scanner scan.Scanner
	name    watch.EventType // of the current frame
	object  jsonObject
}

func (c *jsonCodec) frames(a *answer) func(*api.Event[any]) (bool, error) {
	f := &jsonFrames{a: a, scanner: *scan.NewScanner(a.ended, &a.window), object: c.newObjects(a)}
	return f.next
}

// next reads one frame. It first drops the rest of the previous frame, so the window holds only the current frame.
func (f *jsonFrames) next(to *api.Event[any]) (ok bool, err error) {
	s := &f.scanner
	s.Held = false
	i, err := s.Space(0)
	if err != nil {
		return false, err
	}
	s.Drop(i)
	s.Held = true
	f.name = ""
	f.object.outline.Reset()
	end, err := s.Object(0, f.member)
	if err != nil {
		return false, err
	}
	f.object.set(s.B)
	f.object.r.Updates(f.name == watch.Modified)
	ok, err = f.a.event(to, f.name, &f.object, f.object.size())
	s.Drop(end)
	return ok, err
}

// member reads one member of a frame, whose value begins at or after i.
func (f *jsonFrames) member(name []byte, i int) (int, error) {
	i, err := f.scanner.Next(i)
	if err != nil {
		return i, err
	}
	switch string(name) {
	case "type":
		end, err := f.scanner.Value(i, nil)
		if err == nil {
			f.name = eventName(scan.TextOf(f.scanner.B[i:end]))
		}
		return end, err
	case "object":
		f.object.outline.Reset()
		return f.scanner.Value(i, &f.object.outline)
	default:
		return f.scanner.Value(i, nil)
	}
}

// size returns the number of bytes of the object; 0 means that the frame has none.
func (o *jsonObject) size() int {
	c := o.outline.At(o.b)
	if len(c.Tokens) == 0 {
		return 0
	}
	return len(c.Raw())
}
