package apiclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
	idleConnsPerHost = 25

	// readBufferSize, in bytes, holds several events of a busy watch, so that one system call reads them all. The 4 KiB
	// of net/http hold less than one event.
	readBufferSize = 32 << 10

	// maxResponseHeader bounds the head of an answer, in bytes. An error may quote it, and the default of net/http is
	// ten megabytes.
	maxResponseHeader = 1 << 20

	// If nothing arrives on a connection for pingAfter, the client sends a ping. If there is no answer within
	// pingTimeout, it closes the connection. So a watch on a dead connection ends after 45 seconds and not after the
	// kernel's 15 minutes.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// timeouts are the time limits of a transport. Only tests with sockets use other values than the defaults.
type timeouts struct{ dial, handshake, pingAfter, pingTimeout time.Duration }

func (p timeouts) orDefault() timeouts {
	if p == (timeouts{}) {
		return timeouts{dialTimeout, handshakeTimeout, pingAfter, pingTimeout}
	}
	return p
}

// newTransport makes leat's own transport for one client certificate and one set of authorities. It does no I/O.
func newTransport(c Config, roots *x509.CertPool, certificate clientCertificate, sent *sentSecrets) *http.Transport {
	wait := c.timeouts.orDefault()
	p := &proxies{dial: c.DialContext, handshake: wait.handshake, roots: roots, insecure: c.TLS.Insecure, sent: sent}
	t := &http.Transport{
		Proxy:                  p.choose(http.ProxyFromEnvironment),
		OnProxyConnectResponse: p.checkAnswer,
		DialContext:            p.dialContext,
		TLSClientConfig:        c.TLS.config(roots, certificate),
		TLSHandshakeTimeout:    wait.handshake,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: wait.pingAfter, PingTimeout: wait.pingTimeout},
		MaxIdleConnsPerHost:    idleConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		ReadBufferSize:         readBufferSize,
		MaxResponseHeaderBytes: maxResponseHeader,
		// The client decompresses itself: newInflater says why a watch needs that.
		DisableCompression: true,
	}
	if c.DialContext == nil {
		p.dial = newDialer(wait).DialContext
	} else {
		t.Proxy = nil
	}
	if c.ProxyURL != nil {
		t.Proxy = p.choose(http.ProxyURL(c.ProxyURL))
	}
	if c.DisableHTTP2 {
		t.ForceAttemptHTTP2, t.Protocols = false, &http.Protocols{}
		t.Protocols.SetHTTP1(true)
	}
	return t
}

// newDialer returns the dialer for sockets. For HTTP/1.1 its keep-alive probes replace the pings of HTTP/2: a dead
// connection is closed after 30 + 3 × 15 seconds.
func newDialer(wait timeouts) *net.Dialer {
	probes := net.KeepAliveConfig{Enable: true, Idle: wait.pingAfter, Interval: wait.pingTimeout, Count: 3}
	return &net.Dialer{Timeout: wait.dial, KeepAliveConfig: probes}
}

// config returns the configuration of a TLS handshake with the server.
func (t TLS) config(roots *x509.CertPool, certificate clientCertificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure,
		GetClientCertificate: certificate.provide,
	}
}

// clientCertificate provides the certificate to a server that requests one.
type clientCertificate struct {
	certificate *tls.Certificate // may be nil
	asked       *atomic.Bool     // set when a server requests a certificate
}

// provide returns the certificate even if the server lists other authorities than the one that signed it. The server's
// alert then names the problem; without a certificate, it would only say that it is missing.
func (c clientCertificate) provide(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.asked.Store(true)
	if c.certificate == nil {
		return &tls.Certificate{}, nil
	}
	return c.certificate, nil
}

// rootsOf parses authorities in PEM. It ignores certificates that cannot be parsed if at least one can.
func rootsOf(text []byte) (*x509.CertPool, error) {
	if err := checkPEM(text); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("it has no certificate in PEM")
	}
	return roots, nil
}
