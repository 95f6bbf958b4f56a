package testserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// pipeHost is the host name under which the server is reached in memory.
const pipeHost = "testserver"

// ErrRunning is what Run returns when the server runs already.
var ErrRunning = errors.New("testserver: already running")

var firstNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// Server is a Kubernetes API server in memory.
// It corresponds to envtest's control plane of controller-runtime, without processes and on any clock.
type Server struct {
	options Options
	store   *store
	faults  *faults
	watches watches
	log     requestLog
	cert    *certificate // nil without TLS

	mu      sync.Mutex // guards the fields below
	pipe    *pipeListener
	running bool
	used    bool // pipe was served once
	conns   map[net.Conn]struct{}
}

// New makes a server with the built-in resources and the namespaces that every cluster has. It serves once Run is
// called.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{options: o, store: newStore(o), pipe: newPipeListener(), conns: map[net.Conn]struct{}{}}
	s.faults = newFaults(s)
	s.log.limit = o.RequestLog
	if o.TLS {
		s.cert = newCertificate()
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for _, d := range builtins() {
		s.store.define(d)
	}
	s.store.version -= uint64(len(firstNamespaces))
	for _, name := range firstNamespaces {
		tree := object{"metadata": object{"name": name}}
		if _, err := s.store.create(s.store.collections[namespacesResource], "", tree, write{}); err != nil {
			panic(fmt.Sprintf("testserver: namespace %s: %v", name, err))
		}
	}
	s.store.compact()
	return s
}

// Register adds custom resources, each with a status subresource. It panics for a resource without version, kind or
// plural name, or that is there already; see Define for more choices.
func (s *Server) Register(resources ...api.Resource) {
	for _, r := range resources {
		s.Define(Definition{Resource: r})
	}
}

// Define adds a custom resource. It panics if it lacks a version, a kind or a plural name, or if its name is taken.
func (s *Server) Define(d Definition) {
	def, err := customDefinition(d)
	if err != nil {
		panic(err.Error())
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if c := s.store.collections[def.GroupResource()]; c != nil && !c.retired {
		panic(fmt.Sprintf("testserver: define %s: it is defined already", def.Resource))
	}
	s.store.define(def)
}

// Run serves the connections that Client and Dial make, until ctx ends. It returns once every goroutine that it
// started is gone: nil after a cancellation, ErrRunning if the server runs already. Run may be called again, which is a
// server that was restarted with its storage intact.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.listen()
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = false
	}()
	return s.Serve(ctx, l)
}

// listen takes the listener in memory, or a new one if it was used.
func (s *Server) listen() (*pipeListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, ErrRunning
	}
	if s.used {
		s.pipe = newPipeListener()
	}
	s.running, s.used = true, true
	return s.pipe, nil
}

// Serve serves the connections that l accepts, which it closes in the end, until ctx ends; then it cuts them, and
// returns nil once every goroutine that it started is gone. It may run beside Run and beside other calls of Serve.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var active tracker
	server := s.httpServer(ctx, &active)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = server.Close() // errors of closing say nothing that matters to anyone now
	})
	var err error
	if s.cert != nil {
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if stop() {
		_ = server.Close() // as above
	} else {
		<-closed
	}
	cancel()
	active.wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("testserver: serve: %w", err)
}

func (s *Server) httpServer(ctx context.Context, active *tracker) *http.Server {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			active.add(1)
			defer active.add(-1)
			s.handle(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConn,
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				active.add(1)
				s.connected(c)
			case http.StateHijacked:
				active.add(-1) // its handler still counts, and disconnects it
			case http.StateClosed:
				s.disconnected(c)
				active.add(-1)
			}
		},
		Protocols: s.protocols(),
		ErrorLog:  zap.NewStdLog(s.options.Logger),
	}
	if s.cert != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{s.cert.pair}, MinVersion: tls.VersionTLS12}
	}
	return server
}

func (s *Server) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(s.options.HTTP2)
	return p
}

// URL is where Client reaches the server; there is no such host on any network.
func (s *Server) URL() string {
	if s.cert != nil {
		return "https://" + pipeHost
	}
	return "http://" + pipeHost
}

// Client returns an HTTP client, with connections of its own, that reaches the server in memory. Its connections end
// with Run.
func (s *Server) Client() *http.Client {
	t := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
		Protocols:         s.protocols(),
		ForceAttemptHTTP2: s.options.HTTP2,
	}
	if s.cert != nil {
		t.TLSClientConfig = s.TLSConfig()
	}
	return &http.Client{Transport: t}
}

// Dial connects to the server in memory, without TLS: a caller of a server with TLS shakes hands itself, with
// TLSConfig. It waits until Run accepts, and fails with ECONNREFUSED once Run has ended.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if s.faults.refuses() {
		return nil, errRefused
	}
	s.mu.Lock()
	pipe := s.pipe
	s.mu.Unlock()
	return pipe.dial(ctx)
}

// TLSConfig returns what a client needs to trust the server, or nil if the server has no TLS.
func (s *Server) TLSConfig() *tls.Config {
	if s.cert == nil {
		return nil
	}
	return &tls.Config{RootCAs: s.cert.pool, ServerName: pipeHost, MinVersion: tls.VersionTLS12}
}

// CA returns the certificate that vouches for the server, in PEM, or nil if the server has no TLS. A kubeconfig holds
// it as certificate-authority-data.
func (s *Server) CA() []byte {
	if s.cert == nil {
		return nil
	}
	return s.cert.pem
}

// connected remembers a connection, for an Outage to reset; one that comes during an outage, which only a real listener
// accepts, is reset at once.
func (s *Server) connected(c net.Conn) {
	if s.faults.refuses() {
		resetterOf(c).Reset()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
}

func (s *Server) disconnected(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// connKey finds the connection of a request in its context, so that a fault can tear it down.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// tracker counts goroutines and waits until there are none. Unlike a sync.WaitGroup it may be added to while somebody
// waits, which an HTTP/2 connection that ends does.
type tracker struct {
	mu    sync.Mutex // guards count
	count int
	zero  sync.Cond
}

func (t *tracker) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count += n
	if t.count == 0 && t.zero.L != nil {
		t.zero.Broadcast()
	}
}

func (t *tracker) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zero.L = &t.mu
	for t.count > 0 {
		t.zero.Wait()
	}
}
