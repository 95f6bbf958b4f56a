package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/internal/graceful"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/internal/sameorigin"
)

// The limits of every Server. A handler may extend the deadline of its answer, as those of profiles do.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 64 << 10
)

// ServerOptions configure a Server. Handler is required, and either Address or Listener.
type ServerOptions struct {
	// Address is the TCP address to listen on, such as ":8080" or "127.0.0.1:0".
	Address string
	// Listener replaces Address. Run closes it.
	Listener net.Listener
	// TLS, if not nil, makes the server use TLS with the certificates of this configuration.
	TLS *tls.Config
	// Handler serves the requests.
	Handler http.Handler
	// SameOrigin rejects requests that a browser sends for a web page of another origin (403), and bodies from a
	// browser that could come from a form (415). Use it for a server without a login. On a loopback listener, Host must
	// be localhost or a loopback address, with the listener's port. On another listener, Host may be localhost or any
	// IP address, and any name if the request is not from a browser. See docs/decisions/0018.
	SameOrigin bool
	// AllowedHosts are more hosts that SameOrigin accepts in Host and Origin: "name", which allows any port, or
	// "name:port".
	AllowedHosts []string
	// ShutdownTimeout is the time that requests in flight have after the end of Run's context. Then their connections
	// are closed. Zero means 5 seconds; a negative value closes them at once.
	ShutdownTimeout time.Duration
	// Logger logs failed connections and handlers that panic. Nil logs nothing, unless a manager with a logger runs the
	// server.
	Logger *zap.Logger
}

// Server is an http.Server with timeouts and an orderly end. A Manager starts servers first and ends them last. It
// corresponds to Server of controller-runtime's manager.
type Server struct {
	name string
	o    ServerOptions
	log  *zap.Logger

	ran    atomic.Bool
	guard  *sameorigin.Guard // nil without SameOrigin
	addr   net.Addr          // written before synced is closed
	synced chan struct{}     // closed when it listens
}

// NewServer returns a server that listens when Run is called. If the options are invalid, it returns all errors,
// joined.
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
	s := &Server{name: name, o: o, synced: make(chan struct{})}
	s.setLogger(cmp.Or(o.Logger, zap.NewNop()))
	if o.SameOrigin {
		s.guard = guard
	}
	return s, errors.Join(wrong...)
}

// Name returns the name that NewServer got.
func (s *Server) Name() string { return s.name }

// UseLogger sets the logger if ServerOptions.Logger is nil. A manager calls it with its own logger. It must be called
// before Run.
func (s *Server) UseLogger(log *zap.Logger) {
	if s.o.Logger == nil {
		s.setLogger(log)
	}
}

func (s *Server) setLogger(log *zap.Logger) { s.log = log.With(zap.String("server", s.name)) }

// Synced returns a channel that is closed when the server listens. If listening fails, it is never closed.
func (s *Server) Synced() <-chan struct{} { return s.synced }

// Addr returns the address of the listener. It is nil before Synced is closed.
func (s *Server) Addr() net.Addr {
	if !runstate.IsClosed(s.synced) {
		return nil
	}
	return s.addr
}

// Run serves requests until ctx ends. Then requests in flight have ShutdownTimeout; after it, Run cancels their
// contexts and closes their connections. Run returns when no call of the handler is in flight. It returns an error if
// it cannot listen or accept. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return fmt.Errorf("%w (server %s)", ErrRunning, s.name)
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	cut, err := graceful.Serve(ctx, listener, &http.Server{
		Handler:           s.handler(),
		TLSConfig:         s.o.TLS,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.log),
	}, s.o.ShutdownTimeout)
	if cut {
		s.log.Warn("requests are cut off")
	}
	return err
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener := s.o.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.o.Address); err != nil {
			return nil, err // it contains the address
		}
	}
	s.addr = listener.Addr()
	close(s.synced)
	s.log.Info("listening", zap.Stringer("address", s.addr))
	return listener, nil
}

// handler returns the handler of all requests. The server listens already, because the guard needs its address.
func (s *Server) handler() http.Handler {
	if s.guard == nil {
		return s.o.Handler
	}
	return s.guard.Handler(s.addr, s.o.Handler)
}
