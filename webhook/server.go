package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/graceful"
	"github.com/leatproject/leat/internal/runstate"
)

// The limits of every connection. The API server gives a webhook at most 30 seconds.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	maxStreams        = 250 // at once on a connection of HTTP/2
)

// The defaults of Options.
const (
	defaultAddress            = ":9443"
	defaultTimeout            = 10 * time.Second
	defaultShutdownTimeout    = 5 * time.Second
	defaultMaxRequests        = 100
	defaultMaxAdmissionBytes  = 8 << 20
	defaultMaxConversionBytes = 64 << 20
)

// ErrRunning is the error of a second Run.
var ErrRunning = errors.New("webhook: a server runs only once")

// Options configure a Server. Either CertFile and KeyFile or Certificates are required.
type Options struct {
	// Address is the TCP address to listen on. Empty means ":9443".
	Address string
	// Listener replaces Address. Run closes it.
	Listener net.Listener

	// CertFile and KeyFile are the serving certificate with its chain and its private key, in PEM. Both are read again
	// when they change, for new connections. Until both are complete and fit together, the former ones stay in use.
	CertFile, KeyFile string
	// Certificates replaces CertFile and KeyFile. Package selfsigned has one.
	Certificates CertificateSource
	// TLS may contain more settings, such as ClientAuth and ClientCAs. The server sets the certificate, and TLS 1.2 as
	// the lowest version unless TLS has a higher one. Nil means none.
	TLS *tls.Config

	// Limits bound what one request and all requests together can use.
	Limits Limits
	// ShutdownTimeout is the time that requests in flight have after the end of Run's context. Then their connections
	// are closed. Zero means 5 seconds; a negative value closes them at once.
	ShutdownTimeout time.Duration

	// Observer counts requests and certificates. Nil counts nothing, unless a manager with metrics runs the server.
	Observer Observer
	// Logger logs refused requests, panics, handshakes that fail, and new certificates. Nil logs nothing, unless a
	// manager with a logger runs the server.
	Logger *zap.Logger
}

// Limits bound the cost of requests. Zero values mean the defaults.
type Limits struct {
	// Timeout is the time for a request without the query parameter timeout, and the most for one that has it. The API
	// server sends the parameter; a tenth of it, and at most a second, is reserved for the answer. The default is 10 s
	// without the parameter and 30 s with it.
	Timeout time.Duration
	// MaxRequests is the number of webhooks that are called at once. Other requests wait until their time is over, and
	// then get 429. A request whose body has not arrived does not count. The default is 100.
	MaxRequests int
	// MaxAdmissionBytes limits the body of an AdmissionReview, which has at most two objects. A larger one gets 413.
	// The default is 8 MiB.
	MaxAdmissionBytes int64
	// MaxConversionBytes limits the body of a ConversionReview. It may have all objects of a list. The default is 64
	// MiB. All bodies together may have MaxRequests times the larger one of both limits; a request beyond that gets
	// 429.
	MaxConversionBytes int64
}

// CertificateSource provides the serving certificate. It must be safe for concurrent use. It may also have a method
// NotSynced() error, which says why there is no certificate yet; see Server.NotSynced. If it has the methods UseLogger
// and UseMetrics of a Server, it gets the server's logger and observer.
type CertificateSource interface {
	// Run keeps the certificate up to date until ctx ends. It returns nil then. An error ends the server.
	Run(ctx context.Context) error
	// Certificate returns the certificate for a new connection. It blocks until there is one or ctx ends.
	Certificate(ctx context.Context) (*tls.Certificate, error)
}

// Observer counts what servers do. *metrics.Metrics implements it. Its methods must be safe for concurrent use and must
// not block.
type Observer interface {
	// WebhookAdded is called once for each path.
	WebhookAdded(path string)
	// WebhookStarted is called at the begin of each request for a known path.
	WebhookStarted(path string)
	// WebhookEnded is called at the end of each such request, with the code of the HTTP answer.
	WebhookEnded(path string, code int, took time.Duration)
	// WebhookPanicked is called when the code of an admission or a conversion webhook has panicked.
	WebhookPanicked(conversion bool)
	// CertificateRead is called after the files of a certificate were read, or its Secret. err says why they cannot be
	// used, or is nil.
	CertificateRead(err error)
}

// Webhook answers the reviews that the API server sends to one path. Admission and Conversion implement it.
type Webhook interface{ hook() hook }

// hook is a compiled Webhook.
type hook struct {
	conversion bool
	// review answers the body of a request with an object for encoding/json. Its errors are *failure.
	review func(ctx context.Context, body []byte) (any, error)
}

// Server is an HTTPS server for webhooks. It corresponds to the webhook server of controller-runtime.
//
// A Manager runs it in its first group. As an http.Handler it answers requests without TLS, for tests.
type Server struct {
	o     Options
	out   *output
	slots chan struct{} // one element for each request that is being handled

	bodyBytes atomic.Int64 // how many bytes the bodies of further requests may have

	ran    atomic.Bool
	addr   net.Addr      // written before synced is closed
	synced chan struct{} // closed when it listens with a certificate

	mu    sync.RWMutex // guards hooks
	hooks map[string]hook
}

// New returns a server that listens when Run is called. If the options are invalid, it returns all errors, joined.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		o: o, out: &output{}, slots: make(chan struct{}, o.Limits.MaxRequests), synced: make(chan struct{}), hooks: map[string]hook{},
	}
	if o.Certificates == nil {
		s.o.Certificates = &files{cert: o.CertFile, key: o.KeyFile, out: s.out}
	}
	s.setLogger(cmp.Or(o.Logger, zap.NewNop()))
	s.out.observer.Store(new(Observer(noObserver{})))
	if o.Observer != nil {
		s.setObserver(o.Observer)
	}
	s.bodyBytes.Store(o.Limits.allBytes())
	return s, nil
}

func (o Options) withDefaults() (Options, error) {
	var wrong []error
	if o.Address != "" && o.Listener != nil {
		wrong = append(wrong, errors.New("webhook: Options have an Address and a Listener; set only one"))
	}
	if files := o.CertFile != "" && o.KeyFile != ""; files == (o.Certificates != nil) || (o.CertFile == "") != (o.KeyFile == "") {
		wrong = append(wrong, errors.New("webhook: Options need either CertFile and KeyFile, or Certificates"))
	}
	if l := o.Limits; l.Timeout < 0 || l.MaxRequests < 0 || l.MaxAdmissionBytes < 0 || l.MaxConversionBytes < 0 {
		wrong = append(wrong, errors.New("webhook: Options.Limits must not be negative"))
	}
	setDefault(&o.Address, defaultAddress)
	setDefault(&o.ShutdownTimeout, defaultShutdownTimeout)
	setDefault(&o.Limits.MaxRequests, defaultMaxRequests)
	setDefault(&o.Limits.MaxAdmissionBytes, defaultMaxAdmissionBytes)
	setDefault(&o.Limits.MaxConversionBytes, defaultMaxConversionBytes)
	if o.TLS == nil {
		o.TLS = &tls.Config{}
	}
	return o, errors.Join(wrong...)
}

// allBytes returns how many bytes all bodies together may have.
func (l Limits) allBytes() int64 {
	each := max(l.MaxAdmissionBytes, l.MaxConversionBytes)
	if each > math.MaxInt64/int64(l.MaxRequests) {
		return math.MaxInt64
	}
	return each * int64(l.MaxRequests)
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Handle serves the webhook at a path such as "/validate-training-v1-trainingjob". It panics if the path has a webhook
// already or has no leading slash, or if w is incomplete.
func (s *Server) Handle(path string, w Webhook) {
	observer, ok := s.add(path, w.hook())
	if !ok {
		panic(fmt.Sprintf("webhook: the path %q must begin with a slash and have one webhook", path))
	}
	observer.WebhookAdded(path) // without the lock, because it may be user code
}

// add reports whether the path is valid and was free. It returns the observer that does not know the path yet.
func (s *Server) add(path string, h hook) (Observer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.hooks[path]; taken || !strings.HasPrefix(path, "/") {
		return nil, false
	}
	s.hooks[path] = h
	return s.out.counts(), true
}

// UseLogger sets the logger if Options.Logger is nil, including the logger of Certificates if it has this method. A
// manager calls it with its own logger. It must be called before Run.
func (s *Server) UseLogger(log *zap.Logger) {
	if s.o.Logger == nil {
		s.setLogger(log)
	}
}

func (s *Server) setLogger(log *zap.Logger) {
	s.out.logger.Store(log.With(zap.String("server", s.Name())))
	if user, ok := s.o.Certificates.(interface{ UseLogger(log *zap.Logger) }); ok {
		user.UseLogger(log)
	}
}

// UseMetrics makes metrics the observer if it is an Observer and Options.Observer is nil, also of Certificates if it
// has this method. Metrics.Register of package metrics calls it, so a manager with metrics does.
func (s *Server) UseMetrics(metrics any) {
	if observer, ok := metrics.(Observer); ok && s.o.Observer == nil {
		s.setObserver(observer)
	}
}

func (s *Server) setObserver(observer Observer) {
	for _, path := range s.observed(observer) {
		observer.WebhookAdded(path) // without the lock, because it may be user code
	}
	if user, ok := s.o.Certificates.(interface{ UseMetrics(metrics any) }); ok {
		user.UseMetrics(observer)
	}
}

// observed sets the observer, and returns the paths that were added before.
func (s *Server) observed(observer Observer) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.observer.Store(&observer)
	return slices.Collect(maps.Keys(s.hooks))
}

// Name returns "webhook", the name of the server in logs and errors of a Manager.
func (s *Server) Name() string { return "webhook" }

// Synced returns a channel that is closed when the server listens and has a certificate.
func (s *Server) Synced() <-chan struct{} { return s.synced }

// NotSynced returns the reason why the server does not listen yet: it waits for a certificate. It returns nil if the
// server listens.
func (s *Server) NotSynced() error {
	if runstate.IsClosed(s.synced) {
		return nil
	}
	if source, ok := s.o.Certificates.(interface{ NotSynced() error }); ok {
		if err := source.NotSynced(); err != nil {
			return fmt.Errorf("webhook: there is no certificate yet: %w", err)
		}
	}
	return errors.New("webhook: there is no certificate yet")
}

// Addr returns the address of the listener. It is nil before Synced is closed.
func (s *Server) Addr() net.Addr {
	if !runstate.IsClosed(s.synced) {
		return nil
	}
	return s.addr
}

// Run waits for a certificate, and then serves requests until ctx ends. Then requests in flight have ShutdownTimeout;
// after it, Run cancels their contexts and closes their connections. Run returns when no webhook is being called. The
// error says why it cannot listen or has no certificate.
func (s *Server) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return ErrRunning
	}
	if l := s.o.Listener; l != nil {
		defer l.Close() // serve does it too, but not before it has a certificate
	}
	certificates, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // needed until the last request has ended
	ctx, end := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		if err := s.keep(certificates); err != nil {
			stop(fmt.Errorf("webhook: keep the certificate: %w", err))
		}
		end() // without a certificate the server cannot serve
	})
	defer keeper.Wait()
	defer stop(nil)
	err := s.serve(ctx, certificates)
	if cause := context.Cause(certificates); cause != nil {
		return cause
	}
	return err
}

// keep runs the source of the certificate and turns a panic into an error. Without that, a panic would end the process,
// because no function of the caller is below it on this goroutine.
func (s *Server) keep(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = api.Recovered(v)
		}
	}()
	return s.o.Certificates.Run(ctx)
}

// serve listens and serves until ctx ends.
func (s *Server) serve(ctx, certificates context.Context) error {
	if _, err := s.o.Certificates.Certificate(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("webhook: get the certificate: %w", err)
	}
	listener := s.o.Listener
	if listener == nil {
		var err error
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.o.Address); err != nil {
			return fmt.Errorf("webhook: %w", err) // it contains the address
		}
	}
	s.addr = listener.Addr()
	close(s.synced)
	s.out.log().Info("listening", zap.Stringer("address", s.addr))
	failures, _ := zap.NewStdLogAt(s.out.log(), zap.WarnLevel) // it fails only for a level that does not exist
	cut, err := graceful.Serve(ctx, listener, &http.Server{
		Handler:           s,
		TLSConfig:         s.tls(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          failures,
	}, s.o.ShutdownTimeout)
	if cut {
		s.out.log().Warn("requests are cut off")
	}
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// tls returns the settings of new connections.
func (s *Server) tls() *tls.Config {
	c := s.o.TLS.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.Certificates = nil
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return s.o.Certificates.Certificate(hello.Context())
	}
	return c
}

// output is where a server and its files log and count. Both may be set after requests have begun, because a server is
// an http.Handler before Run.
type output struct {
	logger   atomic.Pointer[zap.Logger]
	observer atomic.Pointer[Observer] // Server.mu is held while it is set
}

func (o *output) log() *zap.Logger { return o.logger.Load() }

func (o *output) counts() Observer { return *o.observer.Load() }

// noObserver counts nothing.
type noObserver struct{}

func (noObserver) WebhookAdded(string)                     {}
func (noObserver) WebhookStarted(string)                   {}
func (noObserver) WebhookEnded(string, int, time.Duration) {}
func (noObserver) WebhookPanicked(bool)                    {}
func (noObserver) CertificateRead(error)                   {}
