package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/webhook"
)

var _ interface {
	manager.Runnable
	manager.Named
	manager.SyncNotifier
	manager.SyncExplainer
	manager.ServerRunnable
} = (*webhook.Server)(nil)

// running is a server on loopback.
type running struct {
	rig
	url   string
	pool  *x509.CertPool
	stop  func()
	ended chan error
}

// start runs a server with a certificate for localhost, and ends it with the test.
func start(t *testing.T, o webhook.Options) *running {
	t.Helper()
	ca := newAuthority(t)
	o.CertFile, o.KeyFile = ca.write(t, t.TempDir(), "localhost", time.Now().Add(time.Hour))
	return run(t, newRig(t, o), ca.pool)
}

func run(t *testing.T, r rig, pool *x509.CertPool) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &running{rig: r, pool: pool, stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- r.Run(ctx) }()
	select {
	case <-r.Synced():
	case err := <-s.ended:
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-s.ended)
	})
	_, port, err := net.SplitHostPort(r.Addr().String())
	require.NoError(t, err)
	s.url = "https://localhost:" + port
	return s
}

// onLoopback are options with a free port.
func onLoopback() webhook.Options { return webhook.Options{Address: "127.0.0.1:0"} }

func (s *running) client(c *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// send posts a review over the network and returns the protocol and the code.
func (s *running) send(path string, c *tls.Config) (string, int, error) {
	body := strings.NewReader(review(`"operation":"CREATE","object":` + object("")))
	answer, err := s.client(c).Post(s.url+path, "application/json", body)
	if err != nil {
		return "", 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.Proto, answer.StatusCode, errors.Join(err, answer.Body.Close())
}

func TestServesHTTPS(t *testing.T) {
	s := start(t, onLoopback())
	s.Handle("/validate", allowAll())
	proto, code, err := s.send("/validate?timeout=10s", &tls.Config{RootCAs: s.pool})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "HTTP/2.0", proto)

	_, code, err = s.send("/other", &tls.Config{RootCAs: s.pool})
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, code)
	require.ErrorIs(t, s.Run(t.Context()), webhook.ErrRunning)
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	for _, o := range []webhook.Options{onLoopback(), {Address: "127.0.0.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS10}}} {
		s := start(t, o)
		_, _, err := s.send("/", &tls.Config{RootCAs: s.pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
		require.ErrorContains(t, err, "protocol version")
		_, _, err = s.send("/", &tls.Config{RootCAs: s.pool, MaxVersion: tls.VersionTLS12})
		require.NoError(t, err)
	}
	s := start(t, webhook.Options{Address: "127.0.0.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS13}})
	_, _, err := s.send("/", &tls.Config{RootCAs: s.pool, MaxVersion: tls.VersionTLS12})
	require.ErrorContains(t, err, "protocol version")
}

// TestAWrongCertificateIsLogged connects with a client that trusts another authority, as an API server does whose
// caBundle is wrong.
func TestAWrongCertificateIsLogged(t *testing.T) {
	s := start(t, onLoopback())
	_, _, err := s.send("/validate", &tls.Config{RootCAs: newAuthority(t).pool})
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unknown)
	require.Eventually(t, func() bool {
		return s.logs.FilterLevelExact(zapcore.WarnLevel).FilterMessageSnippet("TLS handshake error").Len() == 1
	}, 10*time.Second, time.Millisecond)
}

func TestClientsMayNeedACertificate(t *testing.T) {
	s := start(t, webhook.Options{Address: "127.0.0.1:0", TLS: &tls.Config{ClientAuth: tls.RequireAnyClientCert}})
	_, _, err := s.send("/validate", &tls.Config{RootCAs: s.pool, MaxVersion: tls.VersionTLS12}) // refused in the handshake
	require.ErrorContains(t, err, "remote error: tls: ")
}

func TestRunNeedsACertificate(t *testing.T) {
	ca := newAuthority(t)
	cert, _ := ca.write(t, t.TempDir(), "localhost", time.Now().Add(time.Hour))
	_, other := ca.write(t, t.TempDir(), "localhost", time.Now().Add(time.Hour))
	for files, text := range map[[2]string]string{
		{"/nowhere/tls.crt", "/nowhere/tls.key"}: "webhook: get the certificate: read /nowhere/tls.crt: no such file",
		{cert, other}:                            "private key does not match public key",
		{cert, cert}:                             "webhook: get the certificate: " + cert,
	} {
		r := newRig(t, webhook.Options{Address: "127.0.0.1:0", CertFile: files[0], KeyFile: files[1]})
		require.ErrorContains(t, r.Run(t.Context()), text)
		require.Nil(t, r.Addr())
		require.Len(t, r.count.reads, 1)
		require.Error(t, r.count.reads[0])
	}
}

// source is a CertificateSource whose Run ends when it gets an error, and whose certificate does not come.
type source struct{ failures chan error }

func (s source) Run(ctx context.Context) error {
	select {
	case err := <-s.failures:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (source) Certificate(ctx context.Context) (*tls.Certificate, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestASourceThatFailsEndsTheServer(t *testing.T) {
	failures := make(chan error, 1)
	failures <- errors.New("the Secret is forbidden")
	r := newRig(t, webhook.Options{Address: "127.0.0.1:0", Certificates: source{failures}})
	require.EqualError(t, r.Run(t.Context()), "webhook: keep the certificate: the Secret is forbidden")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = newRig(t, webhook.Options{Address: "127.0.0.1:0", Certificates: source{}})
	require.NoError(t, r.Run(ctx), "the end of the context is not a failure")
}

// panickingSource is a CertificateSource whose Run panics, and which has no certificate.
type panickingSource struct{ source }

func (panickingSource) Run(context.Context) error { panic("no source") }

func TestASourceThatPanicsEndsTheServer(t *testing.T) {
	r := newRig(t, webhook.Options{Address: "127.0.0.1:0", Certificates: panickingSource{}})
	err := r.Run(t.Context())
	require.ErrorContains(t, err, "webhook: keep the certificate: panic: no source")
	var p *api.PanicError
	require.ErrorAs(t, err, &p)
	require.Contains(t, string(p.Stack), "panickingSource")
}

// TestTheServerSaysWhyItIsNotSynced asks a server without a certificate, and one that listens.
func TestTheServerSaysWhyItIsNotSynced(t *testing.T) {
	r := newRig(t, webhook.Options{Address: "127.0.0.1:0", Certificates: source{}})
	require.EqualError(t, r.NotSynced(), "webhook: there is no certificate yet")
	require.NoError(t, start(t, onLoopback()).NotSynced())
}

// TestASlowBodyEnds sends a part of a body. The request ends when its time is over.
func TestASlowBodyEnds(t *testing.T) {
	o := onLoopback()
	o.Limits.Timeout = 50 * time.Millisecond
	s := start(t, o)
	s.Handle("/validate", allowAll())
	body, rest := io.Pipe()
	defer rest.Close()
	answer := must.Get(s.client(&tls.Config{RootCAs: s.pool}).Post(s.url+"/validate", "application/json", body))(t)
	defer answer.Body.Close()
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.Contains(t, s.refusals()[0], "400: cannot read the body: ")
}

func TestAnAddressThatIsTaken(t *testing.T) {
	s := start(t, onLoopback())
	ca := newAuthority(t)
	o := webhook.Options{Address: s.Addr().String()}
	o.CertFile, o.KeyFile = ca.write(t, t.TempDir(), "localhost", time.Now().Add(time.Hour))
	require.ErrorContains(t, newRig(t, o).Run(t.Context()), "address already in use")
}

// TestRequestsInFlightEnd ends a server while it handles a request. The request is answered within ShutdownTimeout, and
// with a negative ShutdownTimeout its context ends at once.
func TestRequestsInFlightEnd(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1} {
		o := onLoopback()
		o.ShutdownTimeout = timeout
		s := start(t, o)
		arrived, released := make(chan struct{}), make(chan struct{})
		cut := false
		s.Handle("/slow", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](func(ctx context.Context, _ *mill) error {
			close(arrived)
			select {
			case <-released:
			case <-ctx.Done():
				cut = true
			}
			return nil
		})})
		code := make(chan int, 1)
		go func() {
			_, c, _ := s.send("/slow", &tls.Config{RootCAs: s.pool})
			code <- c
		}()
		<-arrived
		s.stop()
		if timeout == 0 {
			close(released)
			require.Equal(t, http.StatusOK, <-code)
		}
		require.NoError(t, <-s.ended)
		require.Equal(t, timeout < 0, cut)
		s.ended <- nil // for the end of the test
	}
}

func TestOptionsAreChecked(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	const certificates, limits = "webhook: Options need either CertFile and KeyFile, or Certificates", "webhook: Options.Limits must not be negative"
	const address = "webhook: Options have an Address and a Listener; set only one"
	for _, c := range []struct {
		o    webhook.Options
		text string
	}{
		{webhook.Options{}, certificates},
		{webhook.Options{CertFile: "a"}, certificates},
		{webhook.Options{KeyFile: "a", Certificates: source{}}, certificates},
		{webhook.Options{CertFile: "a", KeyFile: "b", Certificates: source{}}, certificates},
		{webhook.Options{Certificates: source{}, Limits: webhook.Limits{Timeout: -1}}, limits},
		{webhook.Options{Certificates: source{}, Limits: webhook.Limits{MaxRequests: -1}}, limits},
		{webhook.Options{Certificates: source{}, Limits: webhook.Limits{MaxAdmissionBytes: -1}}, limits},
		{webhook.Options{Certificates: source{}, Limits: webhook.Limits{MaxConversionBytes: -1}}, limits},
		{webhook.Options{Address: ":1", Listener: listener}, address + "\n" + certificates},
	} {
		require.EqualError(t, must.Err(webhook.New(c.o)), c.text)
	}
}

// TestAManagerRunsTheServerFirst adds a server and a runnable that needs it.
func TestAManagerRunsTheServerFirst(t *testing.T) {
	ca := newAuthority(t)
	o := onLoopback()
	o.CertFile, o.KeyFile = ca.write(t, t.TempDir(), "localhost", time.Now().Add(time.Hour))
	r := newRig(t, o)
	m := must.Get(manager.New(manager.Options{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := m.AddWith(manager.Func(func(context.Context) error {
		defer cancel()
		if r.Addr() == nil {
			return errors.New("the server does not listen yet")
		}
		return nil
	}), manager.Placement{Group: manager.Caches})
	require.NoError(t, err)
	require.NoError(t, m.Add(r.Server))
	require.NotContains(t, errorText(m.Run(ctx)), "does not listen")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRunClosesTheListener runs servers that end before they serve.
func TestRunClosesTheListener(t *testing.T) {
	failed := make(chan error, 1)
	failed <- errors.New("the Secret is forbidden")
	for name, o := range map[string]webhook.Options{
		"no certificate":      {CertFile: "missing", KeyFile: "missing"},
		"the end of a source": {Certificates: source{failed}},
	} {
		t.Run(name, func(t *testing.T) {
			listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			o.Listener = listener
			require.Error(t, newRig(t, o).Run(t.Context()))
			require.ErrorIs(t, listener.Close(), net.ErrClosed)
		})
	}
}

// TestAServerWithALoggerAndAnObserverKeepsThem gives them to another server too, after a webhook was added.
func TestAServerWithALoggerAndAnObserverKeepsThem(t *testing.T) {
	own := newRig(t, webhook.Options{})
	bare := must.Get(webhook.New(webhook.Options{CertFile: "unused", KeyFile: "unused"}))(t)
	hook := webhook.Admission[*corev1.Pod]{Default: webhook.DefaultFunc[*corev1.Pod](nil)}
	core, logs := observer.New(zap.DebugLevel)
	given := &counts{}
	for _, s := range []*webhook.Server{own.Server, bare} {
		s.Handle("/pods", hook)
		s.UseLogger(zap.New(core))
		s.UseMetrics("no observer")
		s.UseMetrics(given)
		s.Handle("/more", hook)
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/pods", strings.NewReader("{}")))
	}
	require.Equal(t, []string{"/pods", "/more"}, own.count.added)
	require.Equal(t, []string{"/pods", "/more"}, given.added)
	require.Equal(t, 1, own.count.started)
	require.Equal(t, 1, given.started)
	require.Equal(t, 1, own.logs.Len())
	require.Equal(t, 1, logs.Len())
}

// lookingObserver sends a request when a webhook is added.
type lookingObserver struct {
	webhook.Observer
	look func()
}

func (l lookingObserver) WebhookAdded(string) { l.look() }

// TestObserversMayUseTheServer calls the server from the observer that it tells of a new webhook.
func TestObserversMayUseTheServer(t *testing.T) {
	var s *webhook.Server
	code := 0
	observer := lookingObserver{Observer: &counts{}, look: func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hook", nil))
		code = w.Code
	}}
	s = must.Get(webhook.New(webhook.Options{CertFile: "unused", KeyFile: "unused", Observer: observer}))(t)
	s.Handle("/hook", allowAll())
	require.Equal(t, http.StatusMethodNotAllowed, code)
}
