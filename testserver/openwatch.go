package testserver

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/internal/disturb"
)

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
