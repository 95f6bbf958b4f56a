package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/internal/fixture/must"
)

// pair makes a certificate that is its own authority, and its key, in PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// write writes a file of a folder. A second write replaces the file.
func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path+"~", content, 0o600))
	require.NoError(t, os.Rename(path+"~", path))
	return path
}

// header returns the headers that a user adds, and the name in its certificate.
func header(t *testing.T, u *auth.User) (http.Header, string) {
	t.Helper()
	h := http.Header{}
	used := must.Get(u.Apply(t.Context(), h))(t)
	if leaf := auth.Leaf(used.Certificate); leaf != nil {
		return h, leaf.Subject.CommonName
	}
	return h, ""
}

func newUser(t *testing.T, o auth.Options) *auth.User {
	t.Helper()
	return must.Get(auth.NewUser(o, &secret.Sent{}))(t)
}

func TestHeadersOfAUser(t *testing.T) {
	h, _ := header(t, newUser(t, auth.Options{Token: secret.New("t")}))
	require.Equal(t, http.Header{"Authorization": {"Bearer t"}}, h)
	h, _ = header(t, newUser(t, auth.Options{Username: "joe", Password: secret.New("pw")}))
	require.Equal(t, http.Header{"Authorization": {"Basic am9lOnB3"}}, h)
	h, _ = header(t, newUser(t, auth.Options{Impersonation: auth.Impersonation{
		UserName: "ann", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"Acme.com/Project é": {"x", "y"}},
	}}))
	require.Equal(t, http.Header{
		"Impersonate-User": {"ann"}, "Impersonate-Uid": {"7"}, "Impersonate-Group": {"a", "b"},
		"Impersonate-Extra-Acme.com%2fproject%20%c3%a9": {"x", "y"},
	}, h)
}

func TestAUserWithoutCredentialsAddsNothing(t *testing.T) {
	u := newUser(t, auth.Options{})
	h, certificate := header(t, u)
	require.Empty(t, h)
	require.Empty(t, certificate)
	require.Nil(t, u.Certificate())
	require.NoError(t, u.Stale())
	require.False(t, u.Refused(t.Context(), auth.Credentials{}))
}

func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		replace := func(name string) {
			cert, key := pair(t, name)
			write(t, dir, "cert", cert)
			write(t, dir, "key", key)
			write(t, dir, "token", []byte(name+"\n"))
		}
		replace("one")
		u := newUser(t, auth.Options{
			TokenFile: filepath.Join(dir, "token"), CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key"),
		})
		require.Equal(t, "one", auth.Leaf(u.Certificate()).Subject.CommonName)
		is := func(want string) {
			t.Helper()
			h, name := header(t, u)
			require.Equal(t, want, name)
			require.Equal(t, "Bearer "+want, h.Get("Authorization"))
		}
		replace("two")
		<-time.After(5*time.Second - 1)
		is("one")
		<-time.After(1)
		is("two")

		replace("three")
		used := must.Get(u.Apply(t.Context(), http.Header{}))(t)
		require.True(t, u.Refused(t.Context(), used), "a refusal reads the files at once")
		is("three")
		used = must.Get(u.Apply(t.Context(), http.Header{}))(t)
		require.False(t, u.Refused(t.Context(), used), "the files are the same")
	})
}

// TestACertificateAndItsKeyAreReplacedTogether replaces the certificate first.
func TestACertificateAndItsKeyAreReplacedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := pair(t, "one")
		u := newUser(t, auth.Options{CertFile: write(t, dir, "cert", cert), KeyFile: write(t, dir, "key", key)})
		cert, key = pair(t, "two")
		write(t, dir, "cert", cert)
		<-time.After(5 * time.Second)
		_, name := header(t, u)
		require.Equal(t, "one", name)
		require.ErrorContains(t, u.Stale(), "TLS.CertFile: tls: private key does not match public key")
		write(t, dir, "key", key)
		<-time.After(5 * time.Second)
		_, name = header(t, u)
		require.Equal(t, "two", name)
		require.NoError(t, u.Stale())
	})
}

func TestErrorsNameTheFieldAndThePath(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, "one")
	good, missing := write(t, dir, "cert", cert), filepath.Join(dir, "missing")
	half := write(t, dir, "half", append(cert[:len(cert):len(cert)], cert[:100]...))
	for want, o := range map[string]auth.Options{
		"TokenFile: stat " + missing:    {TokenFile: missing},
		"TLS.CertFile: stat " + missing: {CertFile: missing, KeyFile: missing},
		"TLS.KeyFile: it has no private key in PEM": {
			CertFile: good, KeyFile: good,
		},
		"TLS.CertFile: it has PEM that is cut or invalid": {CertFile: half, KeyData: secret.New(string(key))},
		"TLS.KeyData: the private key is encrypted, which is not supported": {
			CertFile: good, KeyData: secret.New("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
		},
		"TokenFile: the token file " + write(t, dir, "space", []byte(" \n")) + " is empty":               {TokenFile: filepath.Join(dir, "space")},
		"TokenFile: the token file " + write(t, dir, "lines", []byte("a\nb")) + " has more than a token": {TokenFile: filepath.Join(dir, "lines")},
	} {
		_, err := auth.NewUser(o, &secret.Sent{})
		var field *auth.FieldError
		require.ErrorAs(t, err, &field)
		require.ErrorContains(t, err, want)
	}
}

func TestAuthorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		one, _ := pair(t, "one")
		two, _ := pair(t, "two")
		a := must.Get(auth.NewAuthorities(nil, write(t, dir, "ca", one)))(t)
		before := a.Roots()
		write(t, dir, "ca", two)
		require.False(t, a.Look(time.Now()), "it was read just now")
		a.LookSoon()
		require.True(t, a.Look(time.Now()))
		require.False(t, before.Equal(a.Roots()))

		for broken, want := range map[string]string{"": "is empty", "text": "it has no certificate in PEM", string(two[:99]): "PEM that is cut"} {
			write(t, dir, "ca", []byte(broken))
			<-time.After(5 * time.Second)
			require.False(t, a.Look(time.Now()))
			require.ErrorContains(t, a.Stale(), "TLS.CAFile: ")
			require.ErrorContains(t, a.Stale(), want)
		}
		write(t, dir, "ca", two)
		<-time.After(5 * time.Second)
		require.False(t, a.Look(time.Now()), "these authorities are in use")
		require.NoError(t, a.Stale())
	})
	system := must.Get(auth.NewAuthorities(nil, ""))(t)
	require.Nil(t, system.Roots())
	require.False(t, system.Look(time.Now().Add(time.Hour)))
	require.EqualError(t, must.Err(auth.NewAuthorities([]byte("text"), "ignored")), "TLS.CAData: it has no certificate in PEM")
}

// from is a Source that calls a function.
type from func() (auth.Credentials, error)

func (f from) Credentials(context.Context) (auth.Credentials, error) { return f() }
func (f from) Refused(auth.Credentials)                              {}

func TestCredentialsOfASourceAreChecked(t *testing.T) {
	failed := errors.New("failed")
	for want, f := range map[string]from{
		"failed": func() (auth.Credentials, error) { return auth.Credentials{}, failed },
		"apiclient: the client certificate of a source lacks its certificate or its key": func() (auth.Credentials, error) {
			return auth.Credentials{Certificate: &tls.Certificate{}}, nil
		},
		"apiclient: the token of a source cannot be sent in a header, because it has a line break or another control character": func() (auth.Credentials, error) {
			return auth.Credentials{Token: secret.New("a\nb")}, nil
		},
	} {
		u := newUser(t, auth.Options{Source: f, SourceName: "a source"})
		require.EqualError(t, must.Err(u.Apply(t.Context(), http.Header{})), want)
		require.Nil(t, u.Certificate())
		require.NoError(t, u.Stale())
	}
}

func TestValidHeaders(t *testing.T) {
	for v, want := range map[string]bool{"": true, "a b\tc": true, "é": true, "a\nb": false, "\r": false, "\x00": false, "\x7f": false} {
		require.Equal(t, want, auth.ValidHeader(v), fmt.Sprintf("%q", v))
	}
}
