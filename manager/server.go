package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/internal/sameorigin"
)

// The limits of every Server. An answer may take longer where its handler extends the deadline, as profiles do.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 64 << 10
)

// ServerOptions of a Server. Handler is required, and one of Address and Listener.
type ServerOptions struct {
	// Address is what to listen on, such as ":8080" or "127.0.0.1:0".
	Address string
	// Listener is used instead, and closed by Run.
	Listener net.Listener
	// TLS, if not nil, is spoken; it brings the certificates.
	TLS *tls.Config
	// Handler answers.
	Handler http.Handler
	// SameOrigin refuses requests that browsers send for web pages of other origins, with 403, and bodies from
	// browsers that could come from a form, with 415. It suits a server without a login that programs use. A listener
	// on loopback then answers only if Host is localhost or a loopback address, with the listener's port. Another
	// listener answers to every IP address and to localhost, and to other names if the request is not from a browser.
	// See docs/decisions/0018.
	SameOrigin bool
	// AllowedHosts are further values of Host, and hosts of Origin, that SameOrigin accepts: "name" with any port, or
	// "name:port".
	AllowedHosts []string
	// ShutdownTimeout is how long requests in flight may take once Run is told to end; then they are cut off. Zero
	// means 5 s, a negative value not at all.
	ShutdownTimeout time.Duration
	// Logger is told of connections that fail and handlers that panic; nil is silent.
	Logger *zap.Logger
}

// Server is an http.Server with an end, and with time-outs. A Manager starts it first and ends it last.
// It corresponds to Server of controller-runtime's manager.
type Server struct {
	name string
	o    ServerOptions
	log  *zap.Logger

	ran    atomic.Bool
	guard  *sameorigin.Guard // nil without SameOrigin
	addr   net.Addr          // written before synced is closed
	synced chan struct{}     // closed when it listens

	mu      sync.Mutex     // guards closed
	closed  bool           // no handler is called any more
	handing sync.WaitGroup // the calls of the handler
}

// NewServer returns a server that listens from when it is run. It reports all that is wrong with its options.
func NewServer(name string, o ServerOptions) (*Server, error) {
	var wrong []error
	if name == "" || o.Handler == nil {
		wrong = append(wrong, errors.New("manager: a server needs a name and a Handler"))
	}
	if (o.Address == "") == (o.Listener == nil) {
		wrong = append(wrong, fmt.Errorf("manager: server %s needs either an Address or a Listener", name))
	}
	if !o.SameOrigin && len(o.AllowedHosts) > 0 {
		wrong = append(wrong, fmt.Errorf("manager: AllowedHosts of server %s need SameOrigin", name))
	}
	guard, err := sameorigin.New(o.AllowedHosts)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("manager: server %s: %w", name, err))
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	s := &Server{name: name, o: o, log: o.Logger.With(zap.String("server", name)), synced: make(chan struct{})}
	if o.SameOrigin {
		s.guard = guard
	}
	return s, errors.Join(wrong...)
}

// Name is the one given to NewServer.
func (s *Server) Name() string { return s.name }

// Synced is closed when the server listens. It is never closed if it cannot.
func (s *Server) Synced() <-chan struct{} { return s.synced }

// Addr is where the server listens, and nil before Synced.
func (s *Server) Addr() net.Addr {
	if !runstate.IsClosed(s.synced) {
		return nil
	}
	return s.addr
}

// Run answers requests until ctx ends, and those in flight within ShutdownTimeout; the contexts of those that are
// left are cancelled then, and their connections closed. It returns when no call of the handler is in flight: nil, or
// an error if it cannot listen or accept. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return fmt.Errorf("%w (server %s)", ErrRunning, s.name)
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer s.handing.Wait()
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut() // whoever is still there
	defer s.close()
	server := &http.Server{
		Handler:           s.handler(),
		TLSConfig:         s.o.TLS,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.log),
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(server, listener) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), server.Close())
	case <-ctx.Done():
		s.shutDown(server)
		<-served
		return nil
	}
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener := s.o.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.o.Address); err != nil {
			return nil, err // it says what was to be listened on
		}
	}
	s.addr = listener.Addr()
	close(s.synced)
	s.log.Info("listening", zap.Stringer("address", s.addr))
	return listener, nil
}

func (s *Server) serve(server *http.Server, listener net.Listener) error {
	if s.o.TLS != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// handler returns hand, behind the guard if there is one. It is called when the server listens.
func (s *Server) handler() http.Handler {
	if s.guard == nil {
		return http.HandlerFunc(s.hand)
	}
	return s.guard.Handler(s.addr, http.HandlerFunc(s.hand))
}

// hand calls the handler, and is waited for.
func (s *Server) hand(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return // its connection is closed
	}
	s.handing.Add(1)
	s.mu.Unlock()
	defer s.handing.Done()
	s.o.Handler.ServeHTTP(w, r)
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *Server) shutDown(server *http.Server) {
	grace, cancel := context.WithTimeout(context.Background(), s.o.ShutdownTimeout)
	defer cancel()
	if server.Shutdown(grace) == nil {
		return
	}
	s.log.Warn("requests are cut off")
	_ = server.Close() // of connections whose ends nobody cares for any more
}
