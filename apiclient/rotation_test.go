package apiclient_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// volume is a folder whose files are replaced together, as kubelet replaces those of a Secret: they are links through a
// link "..data", which is moved.
type volume struct {
	t       *testing.T
	dir     string
	version int
}

func newVolume(t *testing.T, files map[string][]byte) *volume {
	t.Helper()
	v := &volume{t: t, dir: t.TempDir()}
	v.replace(files)
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), v.path(name)))
	}
	return v
}

func (v *volume) path(name string) string { return filepath.Join(v.dir, name) }

func (v *volume) replace(files map[string][]byte) {
	v.t.Helper()
	v.version++
	version := fmt.Sprintf("..version_%d", v.version)
	require.NoError(v.t, os.Mkdir(v.path(version), 0o700))
	for name, content := range files {
		require.NoError(v.t, os.WriteFile(filepath.Join(v.dir, version, name), content, 0o600))
	}
	require.NoError(v.t, os.Symlink(version, v.path("..data_tmp")))
	require.NoError(v.t, os.Rename(v.path("..data_tmp"), v.path("..data")))
}

const soon = 5 * time.Second

func TestARotatedClientCertificateTakesOverWithoutDroppingAWatch(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		pair := func(name string) map[string][]byte {
			cert, key := r.authority.client(t, name)
			return map[string][]byte{"tls.crt": cert, "tls.key": key}
		}
		files := newVolume(t, pair("first"))
		cfg := r.config()
		cfg.TLS.CertFile, cfg.TLS.KeyFile = files.path("tls.crt"), files.path("tls.key")
		v := r.view(cfg)
		next, stop := r.watch(v)
		r.is(v, "first")
		require.EqualValues(t, 1, r.opened.Load())
		before := transportOf(t, v.Client())

		files.replace(pair("second"))
		in(soon - 1)
		r.is(v, "first")
		require.Same(t, before, transportOf(t, v.Client()))
		in(1)
		r.is(v, "second")
		require.NotSame(t, before, transportOf(t, v.Client()), "an Opener gets the newest transport")
		require.EqualValues(t, 2, r.opened.Load(), "the second certificate has its own connection")
		require.Equal(t, "8", next(8), "the watch continues")
		in(30 * time.Minute)
		require.Equal(t, "9", next(9))
		require.EqualValues(t, 1, r.closed.Load(), "the idle connection of the second was closed")

		stop()
		in(time.Second)
		require.EqualValues(t, 2, r.closed.Load(), "all connections of the first are closed")
		r.seen = nil
		_, stop = r.watch(v)
		require.Equal(t, []string{"second"}, r.seen, "a watch that opens again uses the newest")
		stop()

		files.replace(pair("third"))
		in(soon)
		opened := r.opened.Load()
		r.is(v, "third")
		in(time.Second)
		require.Equal(t, opened, r.closed.Load(), "idle connections are closed too")
		require.Zero(t, v.Client().Retired())
		v.Client().CloseIdleConnections() // the last answer may still be open
		r.is(v, "third")
		v.Client().CloseIdleConnections()
		in(time.Second)
		require.Equal(t, r.opened.Load(), r.closed.Load())
	})
}

func TestARotatedAuthorityIsTrusted(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		other := newAuthority(t)
		files := newVolume(t, map[string][]byte{"ca.crt": r.authority.pem})
		cfg := r.config()
		cfg.TLS = apiclient.TLS{CAFile: files.path("ca.crt")}
		v := r.view(cfg)
		next, stop := r.watch(v)

		r.tls.Store(other.server(t, unchanged)) // for the next handshake
		files.replace(map[string][]byte{"ca.crt": other.pem})
		in(soon)
		r.is(v, "nobody")
		require.EqualValues(t, 2, r.opened.Load())
		require.Equal(t, "8", next(8))

		files.replace(map[string][]byte{"ca.crt": append([]byte("# the same, in another version\n"), other.pem...)})
		in(soon)
		r.is(v, "nobody")
		require.EqualValues(t, 2, r.opened.Load(), "the same authorities do not open a connection")
		stop()
		in(time.Second)
		require.EqualValues(t, 1, r.closed.Load())
	})
}

func TestAnAuthorityThatIsNoLongerNamedIsNotTrusted(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		files := newVolume(t, map[string][]byte{"ca.crt": r.authority.pem})
		cfg := r.config()
		cfg.TLS = apiclient.TLS{CAFile: files.path("ca.crt")}
		v := r.view(cfg)
		r.is(v, "nobody")
		files.replace(map[string][]byte{"ca.crt": newAuthority(t).pem})
		in(soon)
		_, err := r.users(v)
		var typed *apiclient.CertificateError
		require.ErrorAs(t, err, &typed, "an open connection is not used either")
		require.NoError(t, typed.Stale)

		files.replace(map[string][]byte{"ca.crt": r.authority.pem})
		r.is(v, "nobody") // after such an error there is no wait

		require.NoError(t, os.Remove(files.path("ca.crt")))
		in(soon)
		r.is(v, "nobody")
		require.NoError(t, os.Symlink(filepath.Join("..data", "ca.crt"), files.path("ca.crt")))
		in(soon)
		r.is(v, "nobody")
		r.tls.Store(newAuthority(t).server(t, unchanged))
		hangUp(v)
		require.ErrorAs(t, must.Err(r.users(v)), &typed)
		require.NoError(t, typed.Stale, "the file is there again")
	})
}

func TestFilesThatAreBeingReplacedChangeNothing(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		cert, key := r.authority.client(t, "first")
		newCert, newKey := r.authority.client(t, "second")
		stranger := newAuthority(t)
		dir := t.TempDir()
		path := func(name string) string { return filepath.Join(dir, name) }
		put := func(name string, content []byte) { require.NoError(t, os.WriteFile(path(name), content, 0o600)) }
		put("ca", r.authority.pem)
		put("cert", cert)
		put("key", key)
		put("token", []byte("one"))
		cfg := r.config()
		cfg.TLS = apiclient.TLS{CAFile: path("ca"), CertFile: path("cert"), KeyFile: path("key")}
		cfg.BearerTokenFile = path("token")
		v := r.view(cfg)
		first := "first with Bearer one"
		r.is(v, first)
		// why checks the file that the next 401 names.
		why := func(want string) {
			t.Helper()
			in(soon)
			r.is(v, first)
			refuse := func(*http.Request) bool { return true }
			r.refuse.Store(&refuse)
			_, _ = r.users(v) // the client reads the files again and finds no other change
			got, err := r.users(v)
			r.refuse.Store(nil)
			require.True(t, apierrors.IsUnauthorized(err))
			require.Len(t, got, 1, "the credentials are the same, so the request is not sent again")
			if want == "" {
				require.NotContains(t, err.Error(), "cannot be used")
				return
			}
			require.ErrorContains(t, err, "the newer version of the credentials cannot be used: "+want)
		}

		put("cert", nil)
		why("TLS.CertFile: the file " + path("cert") + " is empty")
		put("cert", newCert)
		why("TLS.CertFile: tls: private key does not match public key")
		put("key", newKey[:len(newKey)/2])
		why("TLS.KeyFile: it has no private key")
		put("cert", append(append([]byte{}, newCert...), cert[:100]...))
		put("key", newKey)
		why("TLS.CertFile: it has PEM that is cut or invalid")
		require.NoError(t, os.Remove(path("cert")))
		why("TLS.CertFile: stat " + path("cert"))
		put("cert", cert)
		put("key", key)
		why("")
		put("token", []byte(" \n"))
		why("BearerTokenFile: the token file " + path("token") + " is empty")
		put("token", []byte("a\nb"))
		why("BearerTokenFile: the token file " + path("token") + " has more than a token")
		put("token", []byte("one"))

		for _, broken := range [][]byte{nil, []byte("x"), stranger.pem[:200], append(append([]byte{}, stranger.pem...), r.authority.pem[:99]...)} {
			put("ca", broken)
			in(soon)
			hangUp(v)
			r.is(v, first) // the old authorities: not an empty set, the system's, or half of the new ones
		}
		in(soon)
		r.is(v, first) // the error is remembered between checks of the file
		r.tls.Store(stranger.server(t, unchanged))
		hangUp(v)
		_, err := r.users(v)
		var typed *apiclient.CertificateError
		require.ErrorAs(t, err, &typed)
		require.ErrorContains(t, typed.Stale, "TLS.CAFile")
		require.ErrorContains(t, err, "the newer version of the file cannot be used: ")
		put("ca", stranger.pem)
		r.is(v, "nobody with Bearer one") // the server does not request a certificate

		require.NoError(t, os.Remove(path("token")))
		put("cert", newCert)
		put("key", newKey)
		in(soon)
		r.tls.Store(func() *tls.Config { c := stranger.server(t, unchanged); c.ClientAuth = tls.RequestClientCert; return c }())
		r.is(v, "second with Bearer one") // one broken file does not affect the others
	})
}

// TestTwoVersionsThatLookAlike replaces a token so that only its content differs.
func TestTwoVersionsThatLookAlike(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		path := filepath.Join(t.TempDir(), "token")
		put := func(token string) {
			require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
			require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
		}
		put("one")
		cfg := r.config()
		cfg.BearerTokenFile = path
		v := r.view(cfg)
		put("two")
		in(time.Minute - 1)
		r.is(v, "nobody with Bearer one")
		in(soon)
		r.is(v, "nobody with Bearer two")
		put("three")
		in(soon)
		r.is(v, "nobody with Bearer three") // a longer file
		put("two")
		in(soon)
		r.is(v, "nobody with Bearer two")
		put("six")
		refuse := func(req *http.Request) bool { return req.Header.Get("Authorization") == "Bearer two" }
		r.refuse.Store(&refuse)
		r.is(v, "nobody with Bearer two", "nobody with Bearer six")
	})
}

func TestAFileOfAnySizeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err := apiclient.New(apiclient.Config{Host: "https://h", TLS: apiclient.TLS{CAFile: path}})
	require.ErrorContains(t, err, "Config.TLS.CAFile: read "+path+": it is larger than 4 MiB")
}

// source returns the credentials that a test sets, and records the refused ones.
type source struct {
	mu      sync.Mutex
	newest  apiclient.Credentials
	next    *apiclient.Credentials // after a refusal
	err     error
	refused []apiclient.Credentials
}

func (s *source) Credentials(context.Context) (apiclient.Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest, s.err
}

func (s *source) Refused(c apiclient.Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, c)
	if s.next != nil {
		s.newest = *s.next
	}
}

func certificateOf(t *testing.T, a *authority, name string) *tls.Certificate {
	t.Helper()
	cert, key := a.client(t, name)
	pair := must.Get(tls.X509KeyPair(cert, key))(t)
	return &pair
}

func TestASourceOfCredentials(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		one := apiclient.Credentials{Token: apiclient.NewSecret("one"), Certificate: certificateOf(t, r.authority, "first")}
		two := apiclient.Credentials{Token: apiclient.NewSecret("two"), Certificate: one.Certificate}
		three := apiclient.Credentials{Certificate: certificateOf(t, r.authority, "third")}
		s := &source{newest: one}
		cfg := r.config()
		cfg.Credentials = s
		v := r.view(cfg)
		r.is(v, "first with Bearer one")
		transport := transportOf(t, v.Client())

		refuse := func(req *http.Request) bool { return req.Header.Get("Authorization") == "Bearer one" }
		r.refuse.Store(&refuse)
		got, err := r.users(v)
		require.True(t, apierrors.IsUnauthorized(err))
		require.Equal(t, []string{"first with Bearer one"}, got, "the same credentials are not sent twice")
		require.Equal(t, []apiclient.Credentials{one}, s.refused)

		s.next = &two
		r.is(v, "first with Bearer one", "first with Bearer two")
		require.Equal(t, []apiclient.Credentials{one, one}, s.refused)
		require.Same(t, transport, transportOf(t, v.Client()), "it is the same certificate")
		again := *one.Certificate
		s.newest.Certificate = &again
		r.is(v, "first with Bearer two")
		require.EqualValues(t, 1, r.opened.Load(), "a copy of a certificate is the same")

		next, stop := r.watch(v)
		s.newest, s.next = three, nil
		r.is(v, "third")
		require.EqualValues(t, 2, r.opened.Load())
		require.NotSame(t, transport, transportOf(t, v.Client()))
		require.Equal(t, "8", next(8))
		stop()
		in(time.Second)
		require.EqualValues(t, 1, r.closed.Load())

		onlyFirst := func(req *http.Request) bool { return req.TLS.PeerCertificates[0].Subject.CommonName != "first" }
		r.refuse.Store(&onlyFirst)
		s.next = &apiclient.Credentials{Certificate: one.Certificate}
		r.is(v, "third", "first") // a new certificate is a reason to repeat a request, like a new token
		s.newest = three
		always := func(*http.Request) bool { return true }
		r.refuse.Store(&always)
		s.next = &one
		got, err = r.users(v)
		require.True(t, apierrors.IsUnauthorized(err))
		require.Equal(t, []string{"third", "first with Bearer one"}, got, "the request is sent once more, and no third time")

		s.newest, s.next = apiclient.Credentials{Token: apiclient.NewSecret(secret + "\n")}, nil
		_, err = r.users(v)
		require.ErrorContains(t, err, "get pods default/web: apiclient: the token of *apiclient_test.source cannot be sent in a header")
		require.NotContains(t, err.Error(), secret)
		s.newest = apiclient.Credentials{Certificate: &tls.Certificate{}}
		require.ErrorContains(t, must.Err(r.users(v)), "lacks its certificate or its key")
		s.err = io.ErrClosedPipe
		require.ErrorIs(t, must.Err(r.users(v)), io.ErrClosedPipe)
	})
}

func TestACertificateOfASourceNeedsATransportThatCanUseIt(t *testing.T) {
	a := newAuthority(t)
	s := &source{newest: apiclient.Credentials{Certificate: certificateOf(t, a, "jane")}}
	v := apiclient.NewPartial[*pod](newClient(t, apiclient.Config{Host: "http://h", Transport: canned(onePod), Credentials: s}), podResource, "")
	require.ErrorContains(t, must.Err(v.Get(t.Context(), web, metav1.GetOptions{})), "which Config.Transport cannot use")
	s.newest = apiclient.Credentials{Token: apiclient.NewSecret("x")}
	must.Get(v.Get(t.Context(), web, metav1.GetOptions{}))(t)
}

// TestManyRequestsWhileEverythingRotates is for the race detector.
func TestManyRequestsWhileEverythingRotates(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		certs := make([]*tls.Certificate, 4)
		for i := range certs {
			certs[i] = certificateOf(t, r.authority, fmt.Sprint(i))
		}
		s := &source{newest: apiclient.Credentials{Certificate: certs[0]}}
		cfg := r.config()
		cfg.Credentials = s
		v := r.view(cfg)
		var failed atomic.Int32
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for n := range 20 {
					if i == 0 {
						s.mu.Lock()
						s.newest.Certificate = certs[n%len(certs)]
						s.mu.Unlock()
					}
					if _, err := v.Get(t.Context(), web, metav1.GetOptions{}); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		group.Wait()
		require.Zero(t, failed.Load())
		in(time.Second)
		v.Client().CloseIdleConnections()
		synctest.Wait()
		require.Equal(t, r.opened.Load(), r.closed.Load(), "all connections are closed")
	})
}

func TestAClientCertificateOutOfDateIsNamed(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		refuse := func(req *http.Request) bool {
			leaf := req.TLS.PeerCertificates[0]
			return time.Now().After(leaf.NotAfter) || time.Now().Before(leaf.NotBefore)
		}
		r.refuse.Store(&refuse)
		cert, key := r.authority.leaf(t, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Minute), time.Now().Add(time.Hour)
		})
		cfg := r.config()
		cfg.TLS.CertData, cfg.TLS.KeyData = cert, apiclient.NewSecret(string(key))
		v := r.view(cfg)
		require.ErrorContains(t, must.Err(r.users(v)), `(the client certificate is not valid yet: subject "CN=leaf"`)
		in(2 * time.Minute)
		r.is(v, "leaf")
		in(59 * time.Minute)
		require.Error(t, must.Err(r.users(v)), "the server's has expired too")
		other := r.authority.server(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) })
		other.ClientAuth = tls.RequestClientCert
		r.tls.Store(other)
		_, err := r.users(v)
		require.ErrorContains(t, err, `(the client certificate has expired: subject "CN=leaf"`)
		require.True(t, apierrors.IsUnauthorized(err))
	})
}

// TestEveryTokenThatWasSentIsHidden has an older token that is the beginning of a newer one, and very many tokens.
func TestEveryTokenThatWasSentIsHidden(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "you are "+r.Header.Get("Authorization")+", and were "+secret+".")
	}
	s := &source{}
	cfg := onLoopback(t, echo)
	cfg.Credentials = s
	r := pods(t, cfg)
	for i := range 16 {
		token := secret
		if i > 0 {
			token = fmt.Sprintf("%s-number-%d", secret, i)
		}
		s.newest.Token = apiclient.NewSecret(token)
		require.ErrorContains(t, must.Err(r.Get(t.Context(), web, metav1.GetOptions{})), "you are Bearer REDACTED, and were REDACTED.")
	}
	for i := range 100 {
		s.newest.Token = apiclient.NewSecret(fmt.Sprint("other-", i))
		require.ErrorContains(t, must.Err(r.Get(t.Context(), web, metav1.GetOptions{})), "you are Bearer REDACTED, and were ")
	}
	require.Equal(t, 16, r.Client().Remembered(), "a source that gives another token each time costs no memory")
}

// TestARequestThatFailsKeepsNothing rotates a certificate while the server is not running.
func TestARequestThatFailsKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		old, key := a.leaf(t, func(c *x509.Certificate) { c.Subject.CommonName, c.NotAfter = "bygone", time.Now().Add(-time.Minute) })
		bygone, err := tls.X509KeyPair(old, key)
		require.NoError(t, err)
		s := &source{newest: apiclient.Credentials{Certificate: &bygone}}
		refused := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.EHOSTUNREACH }
		v := apiclient.NewPartial[*pod](newClient(t, apiclient.Config{
			Host: "https://h", DialContext: refused, Credentials: s, Retry: apiclient.Retry{Max: -1},
		}), podResource, "")
		for _, name := range []string{"second", "third"} {
			_, err = v.Get(t.Context(), web, metav1.GetOptions{})
			require.ErrorIs(t, err, syscall.EHOSTUNREACH)
			if name == "second" {
				require.ErrorContains(t, err, `(the client certificate has expired: subject "CN=bygone"`)
			}
			s.newest.Certificate = certificateOf(t, a, name)
		}
		in(time.Second)
		require.Zero(t, v.Client().Retired())
	})
}
