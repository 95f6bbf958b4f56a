package apiclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
)

// authority signs certificates for a test. In a bubble, the certificates have the bubble's dates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key := a.sign(t, template, template, nil)
	cert := must.Get(x509.ParseCertificate(der))(t)
	a.cert, a.key = cert, key
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) sign(t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	if by == nil {
		by = key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by))(t)
	return der, key
}

// leaf makes a certificate and its key, both in PEM.
func (a *authority) leaf(t *testing.T, change func(*x509.Certificate)) (cert, key []byte) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, private := a.sign(t, template, a.cert, a.key)
	raw := must.Get(x509.MarshalECPrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func (a *authority) client(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	return a.leaf(t, func(c *x509.Certificate) { c.Subject.CommonName = name })
}

func (a *authority) server(t *testing.T, change func(*x509.Certificate)) *tls.Config {
	t.Helper()
	cert, key := a.leaf(t, func(c *x509.Certificate) {
		c.Subject.CommonName = "test server"
		c.DNSNames, c.IPAddresses = []string{"server.memory"}, []net.IP{net.IPv4(127, 0, 0, 1)}
		change(c)
	})
	pair := must.Get(tls.X509KeyPair(cert, key))(t)
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func unchanged(*x509.Certificate) {}

// onTLS serves a handler with TLS on a real socket.
func onTLS(t *testing.T, c *tls.Config, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.TLS = c
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

const onePod = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","uid":"u1","resourceVersion":"7"}}`

var web = api.Key{Namespace: "default", Name: "web"}

func TestCertificateErrorsSayWhichAndWhy(t *testing.T) {
	good, other := newAuthority(t), newAuthority(t)
	clientCert, clientKey := other.client(t, "stranger")
	oldCert, oldKey := good.leaf(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.NotAfter = "bygone", time.Now().Add(-time.Minute)
	})
	wantsClient := good.server(t, unchanged)
	wantsClient.ClientAuth, wantsClient.ClientCAs = tls.RequireAndVerifyClientCert, good.pool()
	// With TLS 1.3, the refusal comes after the handshake, and a client that writes then may get a broken pipe instead.
	wantsClient.MaxVersion = tls.VersionTLS12

	cases := []struct {
		name   string
		server *tls.Config
		client apiclient.TLS
		want   []string
		as     any
	}{
		{
			"wrong authority", good.server(t, unchanged),
			apiclient.TLS{CAData: other.pem},
			[]string{`(subject "CN=test server", issuer "CN=test authority"`, "signed by unknown authority"},
			new(x509.UnknownAuthorityError),
		},
		{
			"authority of the system", good.server(t, unchanged),
			apiclient.TLS{},
			[]string{`subject "CN=test server"`, "unknown authority"},
			new(x509.UnknownAuthorityError),
		},
		{
			"expired", good.server(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			apiclient.TLS{CAData: good.pem},
			[]string{`subject "CN=test server"`, "has expired or is not yet valid", " to 20"},
			new(x509.CertificateInvalidError),
		},
		{
			"not valid yet", good.server(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }),
			apiclient.TLS{CAData: good.pem},
			[]string{"not yet valid"},
			new(x509.CertificateInvalidError),
		},
		{
			"wrong host", good.server(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 1, 2, 3)} }),
			apiclient.TLS{CAData: good.pem},
			[]string{`subject "CN=test server"`, "valid for 10.1.2.3, not 127.0.0.1"},
			new(x509.HostnameError),
		},
		{
			"wrong server name", good.server(t, unchanged),
			apiclient.TLS{CAData: good.pem, ServerName: "kubernetes"},
			[]string{"not kubernetes"},
			new(x509.HostnameError),
		},
		{
			"not for servers", good.server(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			apiclient.TLS{CAData: good.pem},
			[]string{"incompatible key usage"},
			new(x509.CertificateInvalidError),
		},
		{
			"client certificate of another", wantsClient,
			apiclient.TLS{CAData: good.pem, CertData: clientCert, KeyData: apiclient.NewSecret(string(clientKey))},
			[]string{`refused the client certificate (subject "CN=stranger"`},
			new(*net.OpError),
		},
		{
			"client certificate missing", wantsClient,
			apiclient.TLS{CAData: good.pem},
			[]string{" requires a client certificate: remote error: tls: handshake failure"},
			new(*net.OpError),
		},
		{
			"client certificate expired", wantsClient,
			apiclient.TLS{CAData: good.pem, CertData: oldCert, KeyData: apiclient.NewSecret(string(oldKey))},
			[]string{`refused the client certificate (subject "CN=bygone"`, " to 20"},
			new(*net.OpError),
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url := onTLS(t, c.server, answer(200, "application/json", onePod))
			_, err := pods(t, apiclient.Config{Host: url, TLS: c.client}).Get(t.Context(), web, metav1.GetOptions{})
			var typed *apiclient.CertificateError
			require.ErrorAs(t, err, &typed)
			for _, want := range append(c.want, "get pods default/web: ", "127.0.0.1:") {
				require.ErrorContains(t, err, want)
			}
			require.ErrorAs(t, err, c.as)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

// TestARefusalAfterTheHandshakeIsExplained uses TLS 1.3, where the client's handshake ends before the server checks the
// certificate. If the alert is lost, the error has what the client knows.
func TestARefusalAfterTheHandshakeIsExplained(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.leaf(t, func(c *x509.Certificate) { c.Subject.CommonName, c.NotAfter = "bygone", time.Now().Add(-time.Minute) })
	config := a.server(t, unchanged)
	config.ClientAuth, config.ClientCAs, config.MinVersion = tls.RequireAndVerifyClientCert, a.pool(), tls.VersionTLS13
	url := onTLS(t, config, answer(200, "application/json", onePod))
	_, err := pods(t, apiclient.Config{Host: url, TLS: apiclient.TLS{CAData: a.pem, CertData: cert, KeyData: apiclient.NewSecret(string(key))}}).
		Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorContains(t, err, `subject "CN=bygone"`)
}

func TestASourceGetsACertificateRefusedInTheHandshake(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	config := a.server(t, unchanged)
	config.ClientAuth, config.ClientCAs, config.MaxVersion = tls.RequireAndVerifyClientCert, a.pool(), tls.VersionTLS12
	url := onTLS(t, config, answer(200, "application/json", onePod))
	stranger := apiclient.Credentials{Certificate: certificateOf(t, other, "stranger")}
	s := &source{newest: stranger, next: &apiclient.Credentials{Certificate: certificateOf(t, a, "jane")}}
	r := pods(t, apiclient.Config{Host: url, TLS: apiclient.TLS{CAData: a.pem}, Credentials: s})
	_, err := r.Get(t.Context(), web, metav1.GetOptions{})
	var typed *apiclient.CertificateError
	require.ErrorAs(t, err, &typed)
	require.True(t, typed.Client)
	require.Equal(t, "CN=stranger", typed.Certificate.Subject.String())
	require.Equal(t, []apiclient.Credentials{stranger}, s.refused)
	must.Get(r.Get(t.Context(), web, metav1.GetOptions{}))(t)
}

func TestTLSIsVerifiedUnlessInsecure(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.client(t, "jane")
	config := a.server(t, unchanged)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	var seen *http.Request
	url := onTLS(t, config, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		answer(200, "application/json", onePod)(w, r)
	})
	ca := apiclient.TLS{CAData: a.pem, CertData: cert, KeyData: apiclient.NewSecret(string(key))}
	for name, c := range map[string]apiclient.TLS{
		"verified": ca,
		"insecure": {Insecure: true, CertData: cert, KeyData: apiclient.NewSecret(string(key))},
		"named":    {CAData: a.pem, CertData: cert, KeyData: apiclient.NewSecret(string(key)), ServerName: "server.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(pods(t, apiclient.Config{Host: url, TLS: c}).Get(t.Context(), web, metav1.GetOptions{}))(t)
			require.Equal(t, "web", got.Name)
			require.Equal(t, 2, seen.ProtoMajor, "HTTP/2")
			require.GreaterOrEqual(t, seen.TLS.Version, uint16(tls.VersionTLS12))
			require.Equal(t, "jane", seen.TLS.PeerCertificates[0].Subject.CommonName)
		})
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	a := newAuthority(t)
	config := a.server(t, unchanged)
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	url := onTLS(t, config, answer(200, "application/json", onePod))
	_, err := pods(t, apiclient.Config{Host: url, TLS: apiclient.TLS{CAData: a.pem}}).Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorContains(t, err, "protocol version")
}

func TestTLSAndPlainHTTPAreDistinguished(t *testing.T) {
	a := newAuthority(t)
	url := onTLS(t, a.server(t, unchanged), answer(200, "application/json", onePod))
	_, err := pods(t, apiclient.Config{Host: "http" + url[len("https"):]}).Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorContains(t, err, "400 Bad Request: Client sent an HTTP request to an HTTPS server.")
	require.True(t, apierrors.IsBadRequest(err))

	plain := onLoopback(t, answer(200, "application/json", onePod))
	_, err = pods(t, apiclient.Config{Host: "https" + plain.Host[len("http"):]}).Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorIs(t, err, http.ErrSchemeMismatch)
	require.ErrorContains(t, err, "write http:// in the URL")
}

func TestARefusedCertificateIsExplainedOn401(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.leaf(t, func(c *x509.Certificate) { c.Subject.CommonName, c.NotAfter = "bygone", time.Now().Add(-time.Minute) })
	config := a.server(t, unchanged)
	config.ClientAuth = tls.RequestClientCert // as kube-apiserver does, which then answers 401
	url := onTLS(t, config, answer(401, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
	_, err := pods(t, apiclient.Config{Host: url, TLS: apiclient.TLS{CAData: a.pem, CertData: cert, KeyData: apiclient.NewSecret(string(key))}}).
		Get(t.Context(), web, metav1.GetOptions{})
	require.True(t, apierrors.IsUnauthorized(err))
	require.ErrorContains(t, err, `Unauthorized (the client certificate has expired: subject "CN=bygone"`)
}

// TestTLSInABubble checks that TLS and HTTP/2 work with fake time: with certificates of the year 2000, and with pings.
func TestTLSInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		dial := listerwatchertest.ServeTLS(t, answer(200, "application/json", onePod), a.server(t, unchanged))
		client := newClient(t, apiclient.Config{
			Host: "https://server.memory", DialContext: dial, TLS: apiclient.TLS{CAData: a.pem},
		})
		r := apiclient.NewTyped[*pod](client, podResource, "")
		require.Equal(t, "7", must.Get(r.Get(t.Context(), web, metav1.GetOptions{}))(t).ResourceVersion)

		<-time.After(40 * time.Minute) // pings keep the connection until it is idle for too long
		<-time.After(2 * time.Hour)    // now the certificate has expired
		_, err := r.Get(t.Context(), web, metav1.GetOptions{})
		require.ErrorContains(t, err, "has expired")
		require.ErrorContains(t, err, "valid from 1999-12-31T23:00:00Z to 2000-01-01T01:00:00Z")
	})
}
