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

// settleTime is what a stream of HTTP/2 that was closed is given to be forgotten by its connection, which is not idle
// before.
const settleTime = time.Second

// generation is a transport, with connections of its own, and what it was made of. Another authority or another client
// certificate makes another generation: a connection keeps the certificates of its handshake for as long as it lives,
// and HTTP/2 would put new requests on it.
type generation struct {
	http        *http.Client
	certificate *tls.Certificate // the client's; nil for none

	owner    *transports // whose mutex guards the fields below
	inFlight int         // requests whose answer is not closed
	retired  bool        // there is a newer one
}

// transports hands out the newest generation. A watch in flight stays on its own; the connections of a generation that
// has been replaced are closed when the last of its answers is.
type transports struct {
	config Config
	sent   *sentSecrets // learns the passwords of proxies
	asked  atomic.Bool  // whether the server has asked for a client certificate

	mu      sync.Mutex // guards the fields below
	ca      *file      // nil for the system's authorities
	roots   *x509.CertPool
	looked  time.Time
	err     error // why roots are not what the file says now; nil if they are
	newest  *generation
	retired []*generation // with answers that are not closed, or about to be closed
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
	ts.newest = ts.generation(certificate)
	return ts, nil
}

func (ts *transports) newGeneration(rt http.RoundTripper, certificate *tls.Certificate) *generation {
	return &generation{http: &http.Client{Transport: rt, CheckRedirect: checkRedirect}, certificate: certificate, owner: ts}
}

func (ts *transports) generation(certificate *tls.Certificate) *generation {
	return ts.newGeneration(newTransport(ts.config, ts.roots, clientCertificate{certificate, &ts.asked}, ts.sent), certificate)
}

// acquire returns the generation of a client certificate and the newest authorities, for one request. Who gets one
// calls release when the answer is closed, or when there is none.
func (ts *transports) acquire(certificate *tls.Certificate) (*generation, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.config.Transport != nil && certificate != nil {
		return nil, errors.New("apiclient: the credentials have a client certificate, and Config.Transport cannot use it")
	}
	g := ts.current(certificate)
	g.inFlight++
	return g, nil
}

// release ends what acquire began.
func (g *generation) release() {
	g.owner.mu.Lock()
	defer g.owner.mu.Unlock()
	g.inFlight--
	g.owner.closeDrained(g)
}

// peek returns the newest transport without taking part in its life.
func (ts *transports) peek(certificate *tls.Certificate) http.RoundTripper {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.current(certificate).http.Transport
}

// lookSoon makes the next request look at the file: a handshake has just failed, and a new authority may be the reason.
func (ts *transports) lookSoon() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.looked = time.Time{}
}

// stale says why the file of authorities is not what is used; nil if it is.
func (ts *transports) stale() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.err
}

// closeIdle closes the connections that nothing uses, and a moment later those that were not idle yet.
func (ts *transports) closeIdle() {
	ts.mu.Lock()
	all := append(slices.Clone(ts.retired), ts.newest)
	ts.mu.Unlock()
	for _, g := range all {
		g.http.CloseIdleConnections()
		time.AfterFunc(settleTime, g.closeUnused)
	}
}

// closeUnused closes the connections of a generation that nobody has taken up again.
func (g *generation) closeUnused() {
	g.owner.mu.Lock()
	unused := g.inFlight == 0
	g.owner.mu.Unlock()
	if unused {
		g.http.CloseIdleConnections()
	}
}

// current is the newest generation, or a newer one where what it was made of has changed.
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

// look reads the authorities again if it is time to, and tells whether there are others now. A file that is empty,
// missing or broken changes nothing: to trust nobody would stop a client that works, and to trust the system's
// authorities would let in whom nobody named.
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

// closeDrained closes the connections of a generation that is of no use any more, a moment later.
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
