package testserver

import (
	"bytes"

	"github.com/leatproject/leat/api"
)

// frame is one event of a watch on its way to the client, or one item of a list.
type frame struct {
	kind FrameType
	key  api.Key
	body []byte // valid during the call only
}

// heldFrame is a frame that a fault holds back.
type heldFrame struct {
	body      []byte
	left      int // frames to be sent before it; 0: until the injection is removed
	injection *Injection
}

// dispatch sends a frame through the faults; false means that the watch has ended.
func (w *watcher) dispatch(f frame) bool {
	select {
	case <-w.open.ended:
		w.finish(w.open.ending)
		return false
	default:
	}
	if !w.faults.busy.Load() && len(w.held) == 0 {
		return w.sink.send(f.body) == nil
	}
	if e, i := frameFault[EndWatch](w.faults, w.request, f); i != nil {
		w.finish(ending{injection: i, status: e.Error, abrupt: e.Abrupt})
		return false
	}
	if _, i := frameFault[StallEvents](w.faults, w.request, f); i != nil && !w.stall(i) {
		return false
	}
	if _, i := frameFault[DropEvent](w.faults, w.request, f); i != nil {
		i.see()
		return true
	}
	if e, i := frameFault[HoldEvent](w.faults, w.request, f); i != nil {
		i.see()
		w.held = append(w.held, heldFrame{body: bytes.Clone(f.body), left: e.Frames, injection: i})
		return true
	}
	if !w.deliver(f) {
		return false
	}
	return w.releaseHeld(true)
}

// deliver writes a frame, mangled, cut or doubled.
func (w *watcher) deliver(f frame) bool {
	if mangled, i := w.faults.malformed(w.request, f, objectOf(f.body)); i != nil {
		i.see()
		f.body = append(append(bytes.Clone(f.body[:objectStart(f.body)]), mangled...), "}\n"...)
	}
	if e, i := frameFault[CutFrame](w.faults, w.request, f); i != nil {
		w.sink.cut(f.body[:min(max(e.At, 0), len(f.body))])
		w.finish(ending{injection: i, abrupt: e.Abrupt})
		return false
	}
	if w.sink.send(f.body) != nil {
		return false
	}
	if _, i := frameFault[DuplicateEvent](w.faults, w.request, f); i != nil {
		i.see()
		return w.sink.send(f.body) == nil
	}
	return true
}

// stall waits until the injection is removed; false means that the watch has ended meanwhile.
func (w *watcher) stall(i *Injection) bool {
	w.sink.flush()
	i.see()
	select {
	case <-i.removed:
		return true
	case <-w.open.ended:
		w.finish(w.open.ending)
	case <-w.sink.gone():
	}
	return false
}

// releaseHeld sends the frames whose time has come. passed tells that a frame has just gone by.
func (w *watcher) releaseHeld(passed bool) bool {
	if len(w.held) == 0 {
		return true
	}
	var kept []heldFrame
	for _, h := range w.held {
		due := false
		if h.left > 0 && passed {
			h.left--
			due = h.left == 0
		}
		select {
		case <-h.injection.removed:
			due = true
		default:
		}
		if !due {
			kept = append(kept, h)
			continue
		}
		if w.sink.send(h.body) != nil {
			return false
		}
	}
	w.held = kept
	return true
}

// objectStart is where the object of a frame begins.
func objectStart(frame []byte) int {
	const mark = `,"object":`
	return bytes.Index(frame, []byte(mark)) + len(mark)
}

func objectOf(frame []byte) []byte {
	return bytes.TrimSuffix(frame[objectStart(frame):], []byte("}\n"))
}
