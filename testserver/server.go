package testserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/pipe"
	"github.com/leatproject/leat/internal/sameorigin"
	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/writer"
)

// Timeouts of kube-apiserver, used on listeners.
const (
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 90 * time.Second
)

// deletionPause is Options.DeletionPause after Serve.
const deletionPause = time.Millisecond

// ErrRunning is the error of Run if the server is already running.
var ErrRunning = errors.New("testserver: Run is already running")

var firstNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// Server is a Kubernetes API server in memory. It corresponds to the control plane of envtest in controller-runtime,
// but it needs no processes and works with the clock of a synctest bubble.
type Server struct {
	options   Options
	extension extension.Extension
	store     *store.Store
	writer    *writer.Writer
	plan      disturb.Plan
	calm      disturb.Plan // has no faults; for requests of the control plane
	watches   watches
	lists     keptLists
	log       requestLog
	gates     gates
	cert      *pipe.Certificate // nil without TLS

	mu      sync.Mutex // guards the fields below
	pipe    *pipe.Listener
	running bool
	used    bool              // a Run has used pipe
	conns   map[net.Conn]bool // whether a handler has taken the connection over, for a WebSocket
}

// New creates a server with the built-in resources and the namespaces of every cluster. It serves requests after Run or
// Serve is called.
func New(o Options) *Server { return NewExtended(o, extension.Extension{}) }

// NewExtended creates a server with what an extension adds. Only modules below testserver can use it.
func NewExtended(o Options, e extension.Extension) *Server {
	o = o.withDefaults()
	if e.Resources == nil {
		e.Resources = registry.Builtins()
	}
	s := newServer(o, e, store.New(o.FirstVersion-uint64(len(firstNamespaces)), o.History, o.Seed))
	s.writer = writer.New(s.store, s.writerOptions())
	s.writer.PauseDeletions(o.DeletionPause)
	if o.TLS {
		s.cert = pipe.NewCertificate()
	}
	namespaces := s.define(e.Resources)
	if e.Connect != nil {
		e.Connect(s.store)
	}
	for _, name := range firstNamespaces {
		if err := s.createNamespace(namespaces, name); err != nil {
			panic(fmt.Sprintf("testserver: create namespace %s: %v", name, err))
		}
	}
	s.writer.Limit(writer.Limits{Objects: o.MaxObjects, Bytes: o.MaxBytes})
	s.store.Lock()
	defer s.store.Unlock()
	s.store.Compact()
	return s
}

func newServer(o Options, e extension.Extension, objects *store.Store) *Server {
	return &Server{
		options: o, extension: e, store: objects, pipe: pipe.Listen(), conns: map[net.Conn]bool{}, log: requestLog{limit: o.RequestLog},
		gates: newGates(o.InFlight),
	}
}

func (s *Server) writerOptions() writer.Options {
	o := s.options
	return writer.Options{
		StrictNamespaces: o.StrictNamespaces, ManagedFields: o.ManagedFields, ImmediateDeletion: o.ImmediateDeletion,
		NamespaceLifecycle: o.NamespaceLifecycle,
		Definition:         s.extension.Definition,
		Settle:             s.extension.Settle,
	}
}

// define adds resources and returns the collection of namespaces.
func (s *Server) define(resources []*registry.Definition) *store.Collection {
	s.store.Lock()
	defer s.store.Unlock()
	for _, d := range resources {
		if d.Schema == nil {
			writer.Untyped(d)
		}
		s.store.Define(d)
	}
	return s.store.Collection(registry.Namespaces)
}

func (s *Server) createNamespace(c *store.Collection, name string) error {
	tree := object.Tree{"metadata": object.Tree{"name": name}}
	w := writer.Write{Served: "v1"}
	if !s.options.ManagedFields {
		_, err := s.createDirectly(c, tree, w)
		return err
	}
	// The managers of a typed resource would build its types, which takes 20 ms in the first server of a process. The
	// result is known.
	object.Metadata(tree)["managedFields"] = []any{object.Tree{
		"manager": "kube-apiserver", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"time": time.Now().UTC().Format(time.RFC3339), "fieldsV1": object.Tree{"f:metadata": object.Tree{
			"f:labels": object.Tree{".": object.Tree{}, "f:kubernetes.io/metadata.name": object.Tree{}},
		}},
	}}
	submission := direct(c, w, "create", func(object.Tree) (object.Tree, error) { return s.decoded(c.Definition(), w, tree) })
	submission.Applied = true
	_, _, err := s.writer.Submit(context.Background(), submission)
	return err
}

// Register adds custom resources with a status subresource. It panics if a resource lacks version, kind or plural name,
// or is already defined. Define has more settings.
func (s *Server) Register(resources ...api.Resource) {
	for _, r := range resources {
		s.Define(Definition{Resource: r})
	}
}

// Define adds a custom resource. It panics if the resource lacks version, kind or plural name, or is already defined.
func (s *Server) Define(d Definition) {
	def, err := registry.Custom(registry.Settings(d))
	if err != nil {
		panic(err.Error())
	}
	s.store.Lock()
	defer s.store.Unlock()
	if s.store.Collection(def.GroupResource()) != nil {
		panic(fmt.Sprintf("testserver: define %s: the resource is already defined", def.Resource))
	}
	s.store.Define(writer.Untyped(def))
}

// Run serves the connections of Client and Dial until ctx ends. It returns nil after all goroutines that it started
// have ended, or ErrRunning if the server is already running. A second Run after the first is like a restart: the
// storage is intact, the connections are new.
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
	return s.serve(ctx, l, func(*http.Server) {})
}

// listen returns the listener in memory, and replaces it first if an earlier Run used it.
func (s *Server) listen() (*pipe.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil, ErrRunning
	}
	if s.used {
		s.pipe = pipe.Listen()
	}
	s.running, s.used = true, true
	return s.pipe, nil
}

// Serve serves the connections that l accepts until ctx ends. It then closes l and all connections, and returns nil
// after all goroutines that it started have ended. It fails if Options.AllowedHosts has a malformed entry or l fails.
// It may run beside Run and beside other calls of Serve.
//
// Browsers can reach a listener. So Serve rejects web pages of other origins (see Options.AllowedHosts) and closes
// connections that are idle or send their headers too slowly, with the timeouts of kube-apiserver.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	guard, err := sameorigin.New(s.options.AllowedHosts)
	if err != nil {
		_ = l.Close() // the other error says more
		return fmt.Errorf("testserver: serve: %w", err)
	}
	if s.options.DeletionPause == 0 {
		s.writer.PauseDeletions(deletionPause)
	}
	return s.serve(ctx, l, func(server *http.Server) {
		server.Handler = guard.Handler(l.Addr(), server.Handler)
		server.ReadHeaderTimeout, server.IdleTimeout = readHeaderTimeout, idleTimeout
	})
}

// serve serves connections as Run and Serve do. configure may change the HTTP server before it starts.
func (s *Server) serve(ctx context.Context, l net.Listener, configure func(*http.Server)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var active tracker
	server := s.httpServer(ctx, &active)
	configure(server)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = server.Close() // all connections end in any case
	})
	l = pipe.Joining(l)
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

// ServeHTTP answers a request of a connection that another server has accepted, which must refuse web pages of other
// origins. It needs no Run, but the controllers of a Cluster do. A watch ends with the context of the request. An
// Outage aborts new requests, and ends the watches.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.refuses() {
		panic(http.ErrAbortHandler)
	}
	s.handle(w, r)
}

func (s *Server) httpServer(ctx context.Context, active *tracker) *http.Server {
	handler := http.Handler(http.HandlerFunc(s.handle))
	if s.options.Middleware != nil {
		handler = s.options.Middleware(handler)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			active.add(1)
			defer active.add(-1)
			if r.Header.Get("Upgrade") != "" {
				defer s.released(r)
			}
			handler.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: pipe.WithConn,
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				active.add(1)
				s.connected(c)
			case http.StateHijacked:
				s.hijacked(c)
				active.add(-1) // its handler still counts it
			case http.StateClosed:
				s.disconnected(c)
				active.add(-1)
			}
		},
		Protocols: s.protocols(),
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	if s.cert != nil {
		server.TLSConfig = &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12}
		if s.extension.Authenticate != nil {
			server.TLSConfig.ClientAuth = tls.RequestClientCert // Authenticate verifies it
		}
	}
	return server
}

func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.options.Certificate != nil {
		if found, err := s.options.Certificate(hello); found != nil || err != nil {
			return found, err
		}
	}
	return &s.cert.Pair, nil
}

func (s *Server) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(s.options.HTTP2)
	return p
}

// URL returns the base URL for Client. No network has this host.
func (s *Server) URL() string {
	if s.cert != nil {
		return "https://" + pipe.Host
	}
	return "http://" + pipe.Host
}

// Client returns a new HTTP client that reaches the server in memory. Its connections end with Run.
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

// Dial connects to the server in memory. It blocks until Run accepts the connection or ctx ends, and fails with
// ECONNREFUSED after Run has ended. The connection is without TLS: if the server uses TLS, the caller does the
// handshake with TLSConfig.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if s.refuses() {
		return nil, pipe.ErrRefused
	}
	s.mu.Lock()
	pipe := s.pipe
	s.mu.Unlock()
	return pipe.Dial(ctx)
}

// TLSConfig returns the configuration with which a client trusts the server, or nil if the server has no TLS.
func (s *Server) TLSConfig() *tls.Config {
	if s.cert == nil {
		return nil
	}
	return &tls.Config{RootCAs: s.cert.Pool, ServerName: pipe.Host, MinVersion: tls.VersionTLS12}
}

// CA returns the certificate of the server's authority in PEM, or nil if the server has no TLS. A kubeconfig contains
// it as certificate-authority-data.
func (s *Server) CA() []byte {
	if s.cert == nil {
		return nil
	}
	return s.cert.PEM
}

// connected remembers a connection, so that an Outage can reset it. During an Outage it resets the connection at once;
// only a real listener accepts one then.
func (s *Server) connected(c net.Conn) {
	if s.refuses() {
		pipe.Reset(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = false
}

// hijacked remembers that net/http says nothing more about a connection.
func (s *Server) hijacked(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
}

// released forgets the connection of a request if its handler had taken it over. The handler has returned.
func (s *Server) released(r *http.Request) {
	if c := pipe.ConnOf(r); c != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conns[c] {
			delete(s.conns, c)
		}
	}
}

func (s *Server) disconnected(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// tracker counts goroutines and waits until all have ended. Unlike sync.WaitGroup, it allows add during wait; HTTP/2
// connections that end need this.
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
