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
	// ShutdownTimeout is how long requests in flight may take once Run is told to end; then they are cut off. Zero means
	// 5 s, a negative value not at all.
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
	addr   net.Addr      // written before synced is closed
	synced chan struct{} // closed when it listens

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
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	s := &Server{name: name, o: o, log: o.Logger.With(zap.String("server", name)), synced: make(chan struct{})}
	return s, errors.Join(wrong...)
}

// Name is the one given to NewServer.
func (s *Server) Name() string { return s.name }

// Synced is closed when the server listens. It is never closed if it cannot.
func (s *Server) Synced() <-chan struct{} { return s.synced }

// Addr is where the server listens, and nil before Synced.
func (s *Server) Addr() net.Addr {
	if !isClosed(s.synced) {
		return nil
	}
	return s.addr
}

// Run answers requests until ctx ends, and those in flight within ShutdownTimeout; the contexts of those that are left are
// cancelled then, and their connections closed. It returns when no call of the handler is in flight: nil, or an error if it
// cannot listen or accept. A server runs once.
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
		Handler:           http.HandlerFunc(s.hand),
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
