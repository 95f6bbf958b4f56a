package apiclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// settleTime is the time after which HTTP/2 connections of closed streams are idle. A connection is not idle at once
// when its last stream is closed.
const settleTime = time.Second

// generation is a transport with its own connections, for one set of authorities and one client certificate. New
// authorities or a new certificate need a new generation, because a connection keeps the certificates of its handshake,
// and HTTP/2 would send new requests on it.
type generation struct {
	http        *http.Client
	certificate *tls.Certificate // the client's; may be nil

	owner    *transports // its mutex guards the fields below
	inFlight int         // requests whose answer is not closed
	retired  bool        // there is a newer generation
}

// transports returns the newest generation to each request. A watch in flight keeps its own. The connections of an old
// generation are closed when its last answer is closed.
type transports struct {
	config Config
	user   http.RoundTripper // the result of Config.WrapTransport; may be nil
	sent   *sentSecrets      // passwords of proxies are added to it
	asked  atomic.Bool       // whether the server has requested a client certificate

	mu      sync.Mutex // guards the fields below
	ca      *file      // nil for the system's authorities
	roots   *x509.CertPool
	looked  time.Time
	err     error // why roots are older than the file; nil if they are not
	newest  *generation
	retired []*generation // with answers that are not closed, or with connections that will be closed soon
}

// newTransports reads the authorities and makes the first generation. Its errors name the field.
func newTransports(c Config, certificate *tls.Certificate, sent *sentSecrets) (*transports, error) {
	ts := &transports{config: c, looked: time.Now(), sent: sent}
	if c.Transport != nil {
		ts.newest = ts.newGeneration(c.Transport, nil)
		return ts, nil
	}
	var err error
	if ts.ca, err = newFile("TLS.CA", c.TLS.CAData, c.TLS.CAFile); err != nil {
		return nil, err
	}
	if ts.ca != nil {
		if ts.roots, err = rootsOf(ts.ca.content); err != nil {
			return nil, ts.ca.fail(err)
		}
	}
	if c.WrapTransport != nil {
		if ts.user = c.WrapTransport(unwrapped{}); ts.user == nil {
			return nil, fieldErrorf("WrapTransport", "it returned nil")
		}
	}
	ts.newest = ts.generation(certificate)
	return ts, nil
}

func (ts *transports) newGeneration(rt http.RoundTripper, certificate *tls.Certificate) *generation {
	return &generation{http: &http.Client{Transport: rt, CheckRedirect: checkRedirect}, certificate: certificate, owner: ts}
}

func (ts *transports) generation(certificate *tls.Certificate) *generation {
	base := newTransport(ts.config, ts.roots, clientCertificate{certificate, &ts.asked}, ts.sent)
	if ts.user != nil {
		return ts.newGeneration(&wrapped{base: base, user: ts.user}, certificate)
	}
	return ts.newGeneration(base, certificate)
}

// acquire returns the generation for a client certificate and the newest authorities, for one request. The caller calls
// release when the answer is closed, or if there is no answer.
func (ts *transports) acquire(certificate *tls.Certificate) (*generation, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.config.Transport != nil && certificate != nil {
		return nil, errors.New("apiclient: the credentials have a client certificate, which Config.Transport cannot use")
	}
	g := ts.current(certificate)
	g.inFlight++
	return g, nil
}

// release ends the use that acquire began.
func (g *generation) release() {
	g.owner.mu.Lock()
	defer g.owner.mu.Unlock()
	g.inFlight--
	g.owner.closeDrained(g)
}

// peek returns the newest transport without counting a use.
func (ts *transports) peek(certificate *tls.Certificate) http.RoundTripper {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.current(certificate).http.Transport
}

// lookSoon makes the next request check the file, because a handshake has failed and a new authority may be the reason.
func (ts *transports) lookSoon() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.looked = time.Time{}
}

// stale returns why the authorities in use are older than their file; nil if they are not.
func (ts *transports) stale() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.err
}

// closeIdle closes the connections without requests now, and again after settleTime.
func (ts *transports) closeIdle() {
	ts.mu.Lock()
	all := append(slices.Clone(ts.retired), ts.newest)
	ts.mu.Unlock()
	for _, g := range all {
		g.http.CloseIdleConnections()
		time.AfterFunc(settleTime, g.closeUnused)
	}
}

// closeUnused closes the connections of a generation that is not in use.
func (g *generation) closeUnused() {
	g.owner.mu.Lock()
	unused := g.inFlight == 0
	g.owner.mu.Unlock()
	if unused {
		g.http.CloseIdleConnections()
	}
}

// current returns the newest generation. It makes a new one if the authorities or the certificate have changed.
func (ts *transports) current(certificate *tls.Certificate) *generation {
	changed := ts.look(time.Now())
	old := ts.newest
	if !changed && sameCertificate(certificate, old.certificate) {
		return old
	}
	ts.newest = ts.generation(certificate)
	old.retired = true
	ts.retired = append(ts.retired, old)
	ts.closeDrained(old)
	return ts.newest
}

// look reads the authorities again if it is time, and reports whether they changed. An empty, missing or broken file
// changes nothing. Without authorities, a working client would stop; with those of the system, it would trust servers
// that nobody named.
func (ts *transports) look(now time.Time) (changed bool) {
	if !ts.ca.rotates() || now.Sub(ts.looked) < lookInterval {
		return false
	}
	ts.looked = now
	changed, err := ts.ca.look(now, false)
	if err == nil && !changed && ts.err == nil {
		return false
	}
	var roots *x509.CertPool
	if err == nil {
		roots, err = rootsOf(ts.ca.content)
	}
	ts.err = nil
	if err != nil {
		ts.err = ts.ca.fail(err)
		return false
	}
	if roots.Equal(ts.roots) {
		return false
	}
	ts.roots = roots
	return true
}

// closeDrained closes the connections of an old generation after settleTime.
func (ts *transports) closeDrained(g *generation) {
	if !g.retired || g.inFlight > 0 {
		return
	}
	time.AfterFunc(settleTime, func() {
		g.http.CloseIdleConnections()
		ts.mu.Lock()
		defer ts.mu.Unlock()
		ts.retired = slices.DeleteFunc(ts.retired, func(o *generation) bool { return o == g })
	})
}
