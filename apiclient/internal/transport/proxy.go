package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// ProxyError is the answer of a proxy that did not connect to the server. client-go has no such type.
type ProxyError struct {
	Proxy      string // host and port
	StatusCode int    // 407 if the proxy requires another user or password
	Status     string // "407 Proxy Authentication Required", as the proxy sent it
}

// Error names the proxy and its answer.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("apiclient: the proxy %s did not connect: it answered %s", e.Proxy, e.Status)
}

// proxies connects to a server, also through proxies. It does TLS with proxies itself, because net/http would use the
// TLS configuration for the server: it would send the client certificate to the proxy and verify the server's name.
type proxies struct {
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	handshake time.Duration  // time limit of a handshake
	roots     *x509.CertPool // of the server; nil for the system's
	insecure  bool
	sent      *secret.Sent

	secure sync.Map // addresses of proxies with TLS, and their names
}

// choose wraps a function that returns the proxy of a request. It returns an http proxy for an https proxy, and
// dialContext adds TLS.
func (p *proxies) choose(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(req *http.Request) (*url.URL, error) {
		u, err := proxy(req)
		if err != nil || u == nil {
			return nil, err
		}
		if password, ok := u.User.Password(); ok {
			p.sent.AddPassword(u.User.Username(), password)
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

// dialContext opens a connection to a server or a proxy, and does the TLS handshake of an https proxy.
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
	config.GetClientCertificate = clientCertificate{nil, &asked}.provide
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, explainProxy(address, err, asked.Load())
	}
	return secure, nil
}

// tlsConfig trusts the authorities of the system and those of the server, because the certificate of a proxy in front
// of a cluster often has the cluster's authority.
func (p *proxies) tlsConfig(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: true, // see VerifyConnection
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

// verify gets the name as an argument, because the connection's state has no name if it is an address.
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

// checkAnswer returns a *ProxyError for the answer of a proxy that does not connect.
func (p *proxies) checkAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	status := p.sent.Quote("", []byte(strings.TrimSpace(resp.Status)))
	return &ProxyError{Proxy: proxy.Host, StatusCode: resp.StatusCode, Status: status}
}

// CheckProxy returns why the URL of a proxy cannot be used; nil if it can. A nil URL is correct.
func CheckProxy(u *url.URL) error {
	if u == nil {
		return nil
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return fmt.Errorf("its scheme is %q; http, https and socks5 are supported", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("it has no host")
	}
	return nil
}
