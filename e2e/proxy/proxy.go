package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy forwards connections to one address.
type Proxy struct {
	target   string
	listener *net.TCPListener

	accepted atomic.Int64
	held     atomic.Int64

	mu       sync.Mutex // guards the fields below
	open     map[*connection]struct{}
	flowing  chan struct{} // closed while bytes may flow
	refusing bool
	ended    bool
}

// Stats has the counters of a proxy.
type Stats struct {
	Accepted int64 // connections ever accepted, including refused ones
	Open     int   // connections that are open now
	Held     int64 // bytes that a server has sent and a stall holds back
}

// Listen listens on loopback. Run forwards the connections to the target, a host and port.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	flowing := make(chan struct{})
	close(flowing)
	return &Proxy{
		target:   target,
		listener: l.(*net.TCPListener),
		open:     make(map[*connection]struct{}),
		flowing:  flowing,
	}, nil
}

// Address returns the host and port that clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Run forwards until ctx ends, resets the open connections and returns nil. It may be called once.
func (p *Proxy) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() {
		<-ctx.Done()
		p.end()
	})
	for {
		client, err := p.listener.AcceptTCP()
		if ctx.Err() != nil {
			if err == nil {
				_ = client.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
		p.accepted.Add(1)
		running.Go(func() { p.forward(ctx, client) })
	}
}

// Cut resets every open connection at both ends, and returns their number.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.reset()
	}
	return len(p.open)
}

// HalfClose ends every open connection towards the client, keeps the other direction, and returns their number.
func (p *Proxy) HalfClose() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.client.CloseWrite() // fails only if the client is gone
	}
	return len(p.open)
}

// Stall holds all bytes back, in both directions, until Resume. Connections stay open, and new ones are accepted.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isFlowing() {
		p.flowing = make(chan struct{})
	}
}

// Resume ends a stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isFlowing() {
		close(p.flowing)
	}
}

// Refuse starts or stops resetting new connections. Open ones stay.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = refuse
}

// Stats returns the current counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Accepted: p.accepted.Load(), Open: len(p.open), Held: p.held.Load()}
}

func (p *Proxy) isFlowing() bool {
	select {
	case <-p.flowing:
		return true
	default:
		return false
	}
}

// gate returns a channel that is closed while bytes may flow.
func (p *Proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flowing
}

func (p *Proxy) forward(ctx context.Context, client *net.TCPConn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", p.target)
	if err != nil {
		reset(client) // the server refused the connection, so the proxy does, too
		return
	}
	c := &connection{client: client, server: server.(*net.TCPConn), cut: make(chan struct{})}
	if !p.admit(c) {
		c.reset()
		return
	}
	defer p.dismiss(c)
	c.pump(p.gate, &p.held)
}

func (p *Proxy) admit(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing || p.ended {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) dismiss(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = errors.Join(c.client.Close(), c.server.Close()) // usually closed already
}

func (p *Proxy) end() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Cut()
}
