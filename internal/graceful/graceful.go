package graceful

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve serves requests until ctx ends, with TLS if the server has a TLSConfig. Then requests in flight have the time
// of grace; after it, their contexts end and their connections are closed, and cut is true. Serve returns when no call
// of the handler is in flight. The error says why it cannot accept connections. Serve closes the listener.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, grace time.Duration) (cut bool, err error) {
	calls := calls{handler: server.Handler}
	defer calls.inFlight.Wait()
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end() // of requests that are still in flight
	defer calls.close()
	server.Handler = &calls
	server.BaseContext = func(net.Listener) context.Context { return requests }
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(listener, "", "")
			return
		}
		served <- server.Serve(listener)
	}()
	select {
	case err := <-served:
		return false, errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), server.Close())
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if cut = server.Shutdown(limit) != nil; cut {
		_ = server.Close() // errors of closing these connections do not matter
	}
	<-served
	return cut, nil
}

// calls counts the calls of a handler.
type calls struct {
	handler http.Handler

	mu       sync.Mutex // guards closed
	closed   bool       // the handler is not called any more
	inFlight sync.WaitGroup
}

// ServeHTTP calls the handler, unless the server is ending. Then the connection is going to be closed.
func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.inFlight.Add(1)
	c.mu.Unlock()
	defer c.inFlight.Done()
	c.handler.ServeHTTP(w, r)
}

func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
