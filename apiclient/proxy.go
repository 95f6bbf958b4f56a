package apiclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ProxyError is a proxy that did not connect to the server. It has no counterpart in client-go.
type ProxyError struct {
	Proxy      string // host and port
	StatusCode int    // 407 for one that wants another user or password
	Status     string // "407 Proxy Authentication Required", as the proxy wrote it
}

// Error says which proxy it is and what it answered.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("apiclient: the proxy %s did not connect: it answered %s", e.Proxy, e.Status)
}

// proxies knows the way to a server. It speaks TLS to proxies by itself: net/http would do that with the configuration
// that is meant for the server, and so show the client certificate to the proxy and ask it for the server's name.
type proxies struct {
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	handshake time.Duration  // how long one may take
	roots     *x509.CertPool // of the server; nil for the system's
	insecure  bool
	sent      *sentSecrets

	secure sync.Map // addresses of proxies to which TLS is spoken, to their names
}

// choose wraps what chooses a proxy for a request. For an https proxy it returns an http one, which dialContext knows.
func (p *proxies) choose(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(req *http.Request) (*url.URL, error) {
		u, err := proxy(req)
		if err != nil || u == nil {
			return nil, err
		}
		if password, ok := u.User.Password(); ok {
			p.sent.addPassword(u.User.Username(), password)
		}
		if u.Scheme != "https" {
			return u, nil
		}
		plain := *u
		plain.Scheme, plain.Host = "http", net.JoinHostPort(u.Hostname(), port(u))
		p.secure.Store(plain.Host, u.Hostname())
		return &plain, nil
	}
}

// dialContext opens a connection to a server or a proxy, to one of the latter perhaps with TLS.
func (p *proxies) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	name, ok := p.secure.Load(address)
	if !ok {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.handshake)
	defer cancel()
	var asked atomic.Bool
	config := p.tlsConfig(name.(string))
	config.GetClientCertificate = clientCertificate{nil, &asked}.give
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, explainProxy(address, err, asked.Load())
	}
	return secure, nil
}

// tlsConfig trusts whom the system trusts and whom the server is trusted by: a proxy in front of a cluster often has a
// certificate of the cluster's authority.
func (p *proxies) tlsConfig(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: true, // verified below, if at all
		VerifyConnection: func(state tls.ConnectionState) error {
			if p.insecure {
				return nil
			}
			err := verify(state.PeerCertificates, name, nil)
			if err != nil && p.roots != nil {
				err = verify(state.PeerCertificates, name, p.roots)
			}
			return err
		},
	}
}

// verify is given the name because that of the connection's state is empty for an address.
func verify(chain []*x509.Certificate, name string, roots *x509.CertPool) error {
	o := x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(o)
	return err
}

func explainProxy(address string, err error, asked bool) error {
	if cert, ok := serverCertificate(err); ok {
		return &CertificateError{Host: address, Certificate: cert, Err: bareTLSError(err)}
	}
	if alert, ok := clientCertificateAlert(err, asked); ok {
		return &CertificateError{Host: address, Client: true, Err: alert}
	}
	return fmt.Errorf("TLS with the proxy %s: %w", address, err)
}

// checkAnswer gives the answer of a proxy that does not connect a name.
func (p *proxies) checkAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	status := oneLine("", p.sent.cleanBody([]byte(strings.TrimSpace(resp.Status))))
	return &ProxyError{Proxy: proxy.Host, StatusCode: resp.StatusCode, Status: status}
}
