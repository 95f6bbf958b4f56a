package apiclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
	idleConnsPerHost = 25

	// A connection on which nothing came for pingAfter is asked whether it lives, and closed when it does not answer
	// within pingTimeout: a watch on a dead path ends after 45 seconds instead of after the kernel's quarter of an hour.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// keepAlive does for HTTP/1.1 what pings do for HTTP/2; the connection is given up after 30 + 3 × 15 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout, Count: 3}

// newTransport builds the transport of a Config without one. Certificates and authorities are read here, once; their
// rotation has its place in tls.Config.GetClientCertificate and in a swap of this transport.
func newTransport(c Config) (*http.Transport, *x509.Certificate, error) {
	tlsConfig, leaf, err := c.TLS.build()
	if err != nil {
		return nil, nil, err
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout:     idleConnTimeout,
		// The client inflates by itself: see newInflater for why a watch needs that.
		DisableCompression: true,
	}
	if c.DialContext != nil {
		t.DialContext, t.Proxy = c.DialContext, nil
	}
	if c.ProxyURL != nil {
		t.Proxy = http.ProxyURL(c.ProxyURL)
	}
	return t, leaf, nil
}

// build reads the files and checks what is in them. It also returns the client's certificate, to explain a refusal.
func (t TLS) build() (*tls.Config, *x509.Certificate, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	ca, err := dataOrFile("TLS.CAFile", t.CAData, t.CAFile)
	if err != nil {
		return nil, nil, err
	}
	if ca != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, nil, fieldErrorf(fieldOf("TLS.CA", t.CAData), "there is no certificate in PEM in it")
		}
	}
	cert, err := dataOrFile("TLS.CertFile", t.CertData, t.CertFile)
	if err != nil || cert == nil {
		return c, nil, err
	}
	key, err := dataOrFile("TLS.KeyFile", []byte(t.KeyData.Reveal()), t.KeyFile)
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, nil, &FieldError{Field: fieldOf("TLS.Cert", t.CertData), Err: err}
	}
	c.Certificates = []tls.Certificate{pair}
	return c, pair.Leaf, nil
}

func fieldOf(prefix string, data []byte) string {
	if len(data) > 0 {
		return prefix + "Data"
	}
	return prefix + "File"
}

// dataOrFile returns what a pair of fields says: the data, else the content of the file, else nil.
func dataOrFile(field string, data []byte, path string) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, &FieldError{Field: field, Err: err}
	}
	if len(content) == 0 {
		return nil, &FieldError{Field: field, Err: errors.New("the file " + path + " is empty")}
	}
	return content, nil
}
