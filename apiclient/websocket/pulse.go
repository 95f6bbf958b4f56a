package websocket

import (
	"sync"
	"time"

	ws "github.com/gorilla/websocket"
)

// pulse says when a silent server is asked whether it is there, and how long it may take to answer.
type pulse struct{ after, timeout time.Duration }

// defaultPulse has the times of the HTTP/2 transport.
var defaultPulse = pulse{after: 30 * time.Second, timeout: 15 * time.Second}

// heart asks a server that is silent whether it is there. It is one timer and no goroutine: 100 idle watches would pay
// 100 stacks for nothing.
type heart struct {
	pulse
	conn *ws.Conn
	wire *wire
	busy sync.WaitGroup // with sending

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	asked   time.Time // the last ping, if nothing came since; else zero
	stopped bool
}

func newHeart(p pulse, conn *ws.Conn, w *wire) *heart {
	h := &heart{pulse: p, conn: conn, wire: w}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(h.after, h.beat)
	return h
}

// beat runs when something may be due. The ping is sent without the lock: on a connection that is dead it may block until
// a later beat gives up.
func (h *heart) beat() {
	if h.due() {
		defer h.busy.Done()
		// An error shows at the read that waits.
		_ = h.conn.WriteControl(ws.PingMessage, nil, time.Now().Add(h.timeout))
	}
}

// due decides what a beat does, and tells whether that is a ping.
func (h *heart) due() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	silence := h.wire.silence()
	switch {
	case silence < h.after:
		h.asked = time.Time{}
		h.timer.Reset(h.after - silence)
		return false
	case !h.asked.IsZero() && silence >= time.Since(h.asked):
		h.wire.giveUp(&silentError{after: h.after + h.timeout})
		return false
	}
	h.asked = time.Now()
	h.timer.Reset(h.timeout)
	h.busy.Add(1)
	return true
}

// stop ends the beating of a connection that is closed, and returns when nothing is sent any more.
func (h *heart) stop() {
	h.mu.Lock()
	h.stopped = true
	h.timer.Stop()
	h.mu.Unlock()
	h.busy.Wait()
}
