package transport

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// openingPatience is how long a request waits for another one that is opening a connection. Opening takes a few round
// trips, so a longer wait means that the server cannot be reached.
const openingPatience = time.Second

// opening lets one request at a time look for a connection, so that the next one finds the connection of HTTP/2 that it
// has opened. Without it, net/http opens a connection for each request that begins before the first handshake is
// complete: a program that starts 500 watches does 500 handshakes and then uses three connections. Over HTTP/1.1, each
// request needs its own connection, and requests do not wait. A nil opening lets all pass.
type opening struct {
	turn   chan struct{} // holds a value while a request looks for a connection
	single atomic.Bool   // the connections have one request each: HTTP/1.1
}

func newOpening() *opening { return &opening{turn: make(chan struct{}, 1)} }

// begin waits for the turn of a request. The request uses the returned context, and calls ended when it has its answer
// or has failed.
func (o *opening) begin(ctx context.Context, scheme string) (_ context.Context, ended func()) {
	if o == nil || scheme != "https" || o.single.Load() || !o.wait(ctx) {
		return ctx, func() {}
	}
	ended = sync.OnceFunc(func() { <-o.turn })
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if conn, ok := got.Conn.(*tls.Conn); !ok || conn.ConnectionState().NegotiatedProtocol != "h2" {
			o.single.Store(true)
		}
		ended()
	}}), ended
}

// wait takes the turn. It returns false if ctx or the patience ends first.
func (o *opening) wait(ctx context.Context) bool {
	select {
	case o.turn <- struct{}{}:
		return true
	default:
	}
	patience := time.NewTimer(openingPatience)
	defer patience.Stop()
	select {
	case o.turn <- struct{}{}:
		return true
	case <-patience.C:
		return false
	case <-ctx.Done():
		return false
	}
}
