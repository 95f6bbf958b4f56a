package testserver

import (
	"bytes"

	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/disturb"
)

// frame is one event of a watch before it is sent, or one item of a list.
type frame struct {
	disturb.Frame
	body []byte // valid during the call only
}

// delayedFrame is a frame that a Hold fault delays.
type delayedFrame struct {
	body      []byte
	left      int // number of frames to send before it; 0 means until the injection is removed
	injection *disturb.Injection
}

// dispatch applies the faults to a frame and sends it. It returns false if the watch has ended.
func (w *watcher) dispatch(f frame) bool {
	select {
	case <-w.open.ended:
		w.finish(w.open.ending)
		return false
	default:
	}
	if !w.plan.Busy() && len(w.delayed) == 0 {
		return w.sink.Send(f.body) == nil
	}
	if e, i := disturb.OfFrame[faults.EndWatch](w.plan, w.target(), f.Frame); i != nil {
		w.finish(ending{injection: i, status: e.Error, abrupt: e.Abrupt})
		return false
	}
	if _, i := disturb.OfFrame[faults.StallEvents](w.plan, w.target(), f.Frame); i != nil && !w.stall(i) {
		return false
	}
	if _, i := disturb.OfFrame[faults.Drop](w.plan, w.target(), f.Frame); i != nil {
		i.CountSeen()
		return true
	}
	if e, i := disturb.OfFrame[faults.Hold](w.plan, w.target(), f.Frame); i != nil {
		i.CountSeen()
		w.delayed = append(w.delayed, delayedFrame{body: bytes.Clone(f.body), left: e.Frames, injection: i})
		return true
	}
	if !w.deliver(f) {
		return false
	}
	return w.sendDelayed(true)
}

// deliver writes a frame after the faults that mangle, cut or repeat it. It returns false if the watch has ended.
func (w *watcher) deliver(f frame) bool {
	if mangle, i := w.plan.Malformed(w.target(), f.Frame, w.shape.Type); i != nil {
		i.CountSeen()
		f.body = w.shape.ReplaceObject(f.body, mangle(w.shape.ObjectOf(f.body)))
	}
	if e, i := disturb.OfFrame[faults.CutFrame](w.plan, w.target(), f.Frame); i != nil {
		w.sink.Cut(f.body, e.At)
		w.finish(ending{injection: i, abrupt: e.Abrupt})
		return false
	}
	if w.sink.Send(f.body) != nil {
		return false
	}
	if _, i := disturb.OfFrame[faults.Duplicate](w.plan, w.target(), f.Frame); i != nil {
		i.CountSeen()
		return w.sink.Send(f.body) == nil
	}
	return true
}

// stall waits until the injection is removed. It returns false if the watch ends first.
func (w *watcher) stall(i *disturb.Injection) bool {
	w.sink.Flush()
	i.CountSeen()
	select {
	case <-i.Removed():
		return true
	case <-w.open.ended:
		w.finish(w.open.ending)
	case <-w.sink.Disconnected():
	}
	return false
}

// sendDelayed sends the delayed frames that are due. passed says that another frame was just sent. It returns false if
// the watch has ended.
func (w *watcher) sendDelayed(passed bool) bool {
	if len(w.delayed) == 0 {
		return true
	}
	var kept []delayedFrame
	for _, h := range w.delayed {
		due := false
		if h.left > 0 && passed {
			h.left--
			due = h.left == 0
		}
		select {
		case <-h.injection.Removed():
			due = true
		default:
		}
		if !due {
			kept = append(kept, h)
			continue
		}
		if w.sink.Send(h.body) != nil {
			return false
		}
	}
	w.delayed = kept
	return true
}
