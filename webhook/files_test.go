package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/webhook"
)

// authority signs the certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.cert = must.Get(x509.ParseCertificate(der))(t)
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a serving certificate and its key in PEM.
func (a *authority) issue(t *testing.T, name string, until time.Time) (cert, key []byte) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key))(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// write writes a certificate and its key into a folder, and returns their paths.
func (a *authority) write(t *testing.T, folder, name string, until time.Time) (certFile, keyFile string) {
	t.Helper()
	cert, key := a.issue(t, name, until)
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	return certFile, keyFile
}

// served returns the name in the certificate that a new connection gets.
func served(t *testing.T, r rig) string {
	t.Helper()
	c := must.Get(webhook.CertificatesOf(r.Server).Certificate(t.Context()))(t)
	return c.Leaf.Subject.CommonName
}

func TestFilesRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, folder := newAuthority(t), t.TempDir()
		until := time.Now().Add(100 * time.Hour)
		cert, key := ca.write(t, folder, "first", until)
		r := newRig(t, webhook.Options{CertFile: cert, KeyFile: key})
		require.Equal(t, "first", served(t, r))

		nextCert, nextKey := ca.issue(t, "second", until)
		require.NoError(t, os.WriteFile(cert, nextCert, 0o600))
		require.Equal(t, "first", served(t, r), "files are checked every five seconds")
		<-time.After(5 * time.Second)
		require.Equal(t, "first", served(t, r), "the key does not fit yet")
		<-time.After(5 * time.Second)
		require.Equal(t, "first", served(t, r))
		require.Len(t, r.refusals(), 1, "the same failure is logged once")
		require.Contains(t, r.refusals()[0], "private key does not match public key")

		require.NoError(t, os.WriteFile(key, nextKey, 0o600))
		<-time.After(5 * time.Second)
		require.Equal(t, "second", served(t, r))

		require.NoError(t, os.Remove(cert))
		<-time.After(5 * time.Second)
		require.Equal(t, "second", served(t, r), "a file that is missing for a moment")
		require.Len(t, r.refusals(), 2)
		require.NoError(t, os.WriteFile(cert, nextCert, 0o600))
		<-time.After(5 * time.Second)
		require.Equal(t, "second", served(t, r))

		reads := len(r.count.reads)
		<-time.After(5 * time.Second)
		served(t, r)
		require.Len(t, r.count.reads, reads, "files that seem unchanged are not read")
		<-time.After(time.Minute)
		served(t, r)
		require.Len(t, r.count.reads, reads+1, "except once a minute")
		require.Equal(t, 2, r.logs.FilterMessage("new certificate").Len())
	})
}

func TestAnExpiredCertificateIsLogged(t *testing.T) {
	cert, key := newAuthority(t).write(t, t.TempDir(), "old", time.Now().Add(-time.Minute))
	r := newRig(t, webhook.Options{CertFile: cert, KeyFile: key})
	require.Equal(t, "old", served(t, r))
	require.Equal(t, 1, r.logs.FilterLevelExact(zapcore.WarnLevel).FilterMessageSnippet("has expired").Len())
}

// TestConnectionsGetTheCertificateOfTheFiles connects to a running server.
func TestConnectionsGetTheCertificateOfTheFiles(t *testing.T) {
	s := start(t, onLoopback())
	connection := must.Get(tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: s.pool, ServerName: "localhost"}))(t)
	require.Equal(t, "localhost", connection.ConnectionState().PeerCertificates[0].Subject.CommonName)
	require.NoError(t, connection.Close())
}
