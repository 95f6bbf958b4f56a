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

	// readBufferSize, in bytes, takes several events of a busy watch out of the kernel at once: net/http's 4 KiB hold
	// less than one.
	readBufferSize = 32 << 10

	// maxResponseHeader bounds the head of an answer, in bytes. net/http's ten megabytes are what an error may quote.
	maxResponseHeader = 1 << 20

	// A connection on which nothing came for pingAfter is asked whether it lives, and closed when it does not answer
	// within pingTimeout: a watch on a dead path ends after 45 seconds instead of after the kernel's quarter of an hour.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// patience is how long a transport waits for a sign of life. Only tests over sockets have less than the default.
type patience struct{ dial, handshake, pingAfter, pingTimeout time.Duration }

func (p patience) orDefault() patience {
	if p == (patience{}) {
		return patience{dialTimeout, handshakeTimeout, pingAfter, pingTimeout}
	}
	return p
}

// newTransport makes the transport of a Config without one, for one client certificate and one set of authorities.
// It does no I/O.
func newTransport(c Config, roots *x509.CertPool, certificate clientCertificate, sent *sentSecrets) *http.Transport {
	wait := c.patience.orDefault()
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
		// The client inflates by itself: see newInflater for why a watch needs that.
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

// newDialer makes what opens sockets. Its keep-alive probes do for HTTP/1.1 what pings do for HTTP/2: a connection is
// given up after 30 + 3 × 15 seconds.
func newDialer(wait patience) *net.Dialer {
	probes := net.KeepAliveConfig{Enable: true, Idle: wait.pingAfter, Interval: wait.pingTimeout, Count: 3}
	return &net.Dialer{Timeout: wait.dial, KeepAliveConfig: probes}
}

// config is what a handshake with the server needs.
func (t TLS) config(roots *x509.CertPool, certificate clientCertificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure,
		GetClientCertificate: certificate.give,
	}
}

// clientCertificate answers a server that asks for one.
type clientCertificate struct {
	certificate *tls.Certificate // nil for none
	asked       *atomic.Bool     // becomes true
}

// give returns the certificate, even if the server names other authorities than that which signed it: it then says what
// is wrong, instead of that there is none.
func (c clientCertificate) give(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.asked.Store(true)
	if c.certificate == nil {
		return &tls.Certificate{}, nil
	}
	return c.certificate, nil
}

// rootsOf reads authorities in PEM. What is not a certificate that can be read is left out, as long as there is one.
func rootsOf(text []byte) (*x509.CertPool, error) {
	if err := checkPEM(text); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("there is no certificate in PEM in it")
	}
	return roots, nil
}
