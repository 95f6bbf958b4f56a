package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/apiclient/internal/secret"
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

// Options configure the connections to a server.
type Options struct {
	CAData     []byte // the authorities, in PEM; with neither data nor a file, those of the system
	CAFile     string
	ServerName string // in the server's certificate, if it is not the host of the URL
	Insecure   bool   // accepts every certificate

	ProxyURL     *url.URL // nil for those of the environment
	DialContext  func(ctx context.Context, network, address string) (net.Conn, error)
	DisableHTTP2 bool

	RoundTripper http.RoundTripper                         // instead of the transport of this package; may be nil
	Wrap         func(http.RoundTripper) http.RoundTripper // may be nil

	HeaderTimeout time.Duration // time limit for the head of the answer to a read; 0 for none
	Timeouts      Timeouts
}

// Timeouts are the time limits of a connection. Only tests with sockets use other values than the defaults.
type Timeouts struct{ Handshake, PingAfter, PingTimeout time.Duration }

func (t Timeouts) orDefault() Timeouts {
	if t == (Timeouts{}) {
		return Timeouts{handshakeTimeout, pingAfter, pingTimeout}
	}
	return t
}

// newTransport makes the transport for one client certificate and one set of authorities. It does no I/O.
func newTransport(o Options, roots *x509.CertPool, certificate clientCertificate, sent *secret.Sent) *http.Transport {
	wait := o.Timeouts.orDefault()
	p := &proxies{dial: o.DialContext, handshake: wait.Handshake, roots: roots, insecure: o.Insecure, sent: sent}
	t := &http.Transport{
		Proxy:                  p.choose(http.ProxyFromEnvironment),
		OnProxyConnectResponse: p.checkAnswer,
		DialContext:            p.dialContext,
		TLSClientConfig:        o.tlsConfig(roots, certificate),
		TLSHandshakeTimeout:    wait.Handshake,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: wait.PingAfter, PingTimeout: wait.PingTimeout},
		MaxIdleConnsPerHost:    idleConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		ReadBufferSize:         readBufferSize,
		MaxResponseHeaderBytes: maxResponseHeader,
		// Inflate decompresses; it says why a watch needs that.
		DisableCompression: true,
	}
	if o.DialContext == nil {
		p.dial = newDialer(wait).DialContext
	} else {
		t.Proxy = nil
	}
	if o.ProxyURL != nil {
		t.Proxy = p.choose(http.ProxyURL(o.ProxyURL))
	}
	if o.DisableHTTP2 {
		t.ForceAttemptHTTP2, t.Protocols = false, &http.Protocols{}
		t.Protocols.SetHTTP1(true)
	}
	return t
}

// newDialer returns the dialer for sockets. For HTTP/1.1 its keep-alive probes replace the pings of HTTP/2: a dead
// connection is closed after 30 + 3 × 15 seconds.
func newDialer(wait Timeouts) *net.Dialer {
	probes := net.KeepAliveConfig{Enable: true, Idle: wait.PingAfter, Interval: wait.PingTimeout, Count: 3}
	return &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: probes}
}

// tlsConfig returns the configuration of a TLS handshake with the server.
func (o Options) tlsConfig(roots *x509.CertPool, certificate clientCertificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: o.ServerName, InsecureSkipVerify: o.Insecure,
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
