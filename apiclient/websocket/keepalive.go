package websocket

import (
	"sync"
	"time"

	ws "github.com/gorilla/websocket"
)

// keepAlive says after how much silence a ping is sent, and how long the answer may take.
type keepAlive struct{ after, timeout time.Duration }

// defaultKeepAlive has the durations of the HTTP/2 transport.
var defaultKeepAlive = keepAlive{after: 30 * time.Second, timeout: 15 * time.Second}

// pinger sends pings to a silent server. It has one timer and no goroutine, because 100 idle watches would need 100
// stacks.
type pinger struct {
	keepAlive
	conn *ws.Conn
	wire *wire
	busy sync.WaitGroup // counts pings that are being sent

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	pinged  time.Time // time of the last ping if nothing arrived since; otherwise zero
	stopped bool
}

func newPinger(k keepAlive, conn *ws.Conn, w *wire) *pinger {
	p := &pinger{keepAlive: k, conn: conn, wire: w}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.after, p.tick)
	return p
}

// tick runs when the timer fires. It sends the ping without the lock, because the write may block on a dead connection
// until a later tick closes it.
func (p *pinger) tick() {
	if p.due() {
		defer p.busy.Done()
		// The waiting read returns the error.
		_ = p.conn.WriteControl(ws.PingMessage, nil, time.Now().Add(p.timeout))
	}
}

// due decides what to do when the timer fires, and reports whether it is a ping.
func (p *pinger) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	silence := p.wire.silence()
	switch {
	case silence < p.after:
		p.pinged = time.Time{}
		p.timer.Reset(p.after - silence)
		return false
	case !p.pinged.IsZero() && silence >= time.Since(p.pinged):
		p.wire.giveUp(&silentError{after: p.after + p.timeout})
		return false
	}
	p.pinged = time.Now()
	p.timer.Reset(p.timeout)
	p.busy.Add(1)
	return true
}

// stop stops the pings of a closed connection. It returns when no ping is being sent.
func (p *pinger) stop() {
	p.mu.Lock()
	p.stopped = true
	p.timer.Stop()
	p.mu.Unlock()
	p.busy.Wait()
}
