package testserver

import (
	"bytes"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// schedule says when a watch sends bookmarks and ends. It compares times, and does not note which timer has fired: of
// several timers for one instant, the watch may see one before the others have fired. What it sends must not depend on
// that.
type schedule struct {
	timer        *time.Timer // fires at the earliest of the times
	interval     time.Duration
	deadline     time.Time
	nextBookmark time.Time // zero without bookmarks
	lastBookmark time.Time // zero without bookmarks, and after the last one
}

// start begins a watch that ends after a timeout and sends a bookmark in each interval, or none if the interval is
// negative. Two seconds before the end it sends one more, which lets the client resume from a late version.
func (s *schedule) start(timeout, interval time.Duration) {
	const early = 2 * time.Second
	now := time.Now()
	s.interval, s.deadline = interval, now.Add(timeout)
	if interval >= 0 {
		s.nextBookmark = now.Add(interval)
		if timeout > early {
			s.lastBookmark = s.deadline.Add(-early)
		}
	}
	s.timer = time.NewTimer(s.next().Sub(now))
}

// next returns the earliest of the times.
func (s *schedule) next() time.Time {
	next := s.deadline
	for _, at := range []time.Time{s.nextBookmark, s.lastBookmark} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// due reports whether the watch ends now, and whether it sends a bookmark. The next bookmark is then an interval away.
func (s *schedule) due() (deadline, bookmark bool) {
	now := time.Now()
	if !now.Before(s.deadline) {
		return true, false
	}
	if !s.nextBookmark.IsZero() && !now.Before(s.nextBookmark) {
		s.nextBookmark, bookmark = now.Add(s.interval), true
	}
	if !s.lastBookmark.IsZero() && !now.Before(s.lastBookmark) {
		s.lastBookmark, bookmark = time.Time{}, true
	}
	if bookmark {
		s.timer.Reset(s.next().Sub(now))
	}
	return false, bookmark
}

func (s *schedule) stop() { s.timer.Stop() }

// watches are the open watches, oldest first.
type watches struct {
	mu   sync.Mutex // guards open
	open []*openWatch
}

// openWatch is the entry of one open watch. A fault uses it to end the watch.
type openWatch struct {
	request Request
	target  disturb.Target
	ended   chan struct{} // closes after ending is set
	ending  ending
}

// ending says how a watch ends.
type ending struct {
	injection *disturb.Injection
	status    *metav1.Status // if not nil, sent first as an ERROR event
	abrupt    bool
}

func newOpenWatch(r Request, t disturb.Target) *openWatch {
	return &openWatch{request: r, target: t, ended: make(chan struct{})}
}

func (ws *watches) add(w *openWatch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open = append(ws.open, w)
}

func (ws *watches) remove(w *openWatch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open = slices.DeleteFunc(ws.open, func(o *openWatch) bool { return o == w })
}

// end ends the open watches that pick selects, oldest first.
func (ws *watches) end(pick func(disturb.Target) (ending, bool)) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.open {
		select {
		case <-w.ended:
			continue
		default:
		}
		if e, ok := pick(w.target); ok {
			w.ending = e
			close(w.ended)
		}
	}
}

// Watches returns the requests of the open watches, oldest first.
func (s *Server) Watches() []Request {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	var out []Request
	for _, w := range s.watches.open {
		out = append(out, w.request)
	}
	return out
}
