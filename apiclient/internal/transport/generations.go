package transport

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/secret"
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
	opening     *opening         // nil if requests never share a connection, or if that is not known

	owner    *Transports // its mutex guards the fields below
	inFlight int         // requests whose answer is not closed
	retired  bool        // there is a newer generation
}

// Transports returns the newest generation to each request. A watch in flight keeps its own. The connections of an old
// generation are closed when its last answer is closed. Transports are safe for concurrent use.
type Transports struct {
	o     Options
	user  http.RoundTripper // the result of Options.Wrap; may be nil
	sent  *secret.Sent      // passwords of proxies are added to it
	asked atomic.Bool       // whether the server has requested a client certificate

	mu          sync.Mutex // guards the fields below
	authorities *auth.Authorities
	newest      *generation
	retired     []*generation // with answers that are not closed, or with connections that will be closed soon
}

// New reads the authorities and makes the first generation, for a client certificate that may be nil. It opens no
// connection. Errors do not quote what sent has. The error is a *auth.FieldError.
func New(o Options, certificate *tls.Certificate, sent *secret.Sent) (*Transports, error) {
	ts := &Transports{o: o, sent: sent}
	if o.RoundTripper != nil {
		ts.newest = ts.newGeneration(o.RoundTripper, nil)
		return ts, nil
	}
	var err error
	if ts.authorities, err = auth.NewAuthorities(o.CAData, o.CAFile); err != nil {
		return nil, err
	}
	if o.Wrap != nil {
		if ts.user = o.Wrap(unwrapped{}); ts.user == nil {
			return nil, &auth.FieldError{Field: "WrapTransport", Err: errors.New("it returned nil")}
		}
	}
	ts.newest = ts.generation(certificate)
	return ts, nil
}

func (ts *Transports) newGeneration(rt http.RoundTripper, certificate *tls.Certificate) *generation {
	return &generation{http: &http.Client{Transport: rt, CheckRedirect: ts.checkRedirect}, certificate: certificate, owner: ts}
}

func (ts *Transports) generation(certificate *tls.Certificate) *generation {
	base := newTransport(ts.o, ts.authorities.Roots(), clientCertificate{certificate, &ts.asked}, ts.sent)
	if ts.user != nil {
		return ts.newGeneration(&wrapped{base: base, user: ts.user}, certificate) // it may hide connections
	}
	g := ts.newGeneration(base, certificate)
	if !ts.o.DisableHTTP2 {
		g.opening = newOpening()
	}
	return g
}

// acquire returns the generation for a client certificate and the newest authorities, for one request. The caller calls
// release when the answer is closed, or if there is no answer.
func (ts *Transports) acquire(certificate *tls.Certificate) *generation {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	g := ts.current(certificate)
	g.inFlight++
	return g
}

// release ends the use that acquire began.
func (g *generation) release() {
	g.owner.mu.Lock()
	defer g.owner.mu.Unlock()
	g.inFlight--
	g.owner.closeDrained(g)
}

// Newest returns the newest transport for a client certificate. Its connections are not kept open for the caller.
func (ts *Transports) Newest(certificate *tls.Certificate) http.RoundTripper {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.current(certificate).http.Transport
}

// lookSoon makes the next request check the file of the authorities, because a handshake has failed and a new authority
// may be the reason. It returns why the authorities in use are older than their file; nil if they are not.
func (ts *Transports) lookSoon() (stale error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.authorities == nil { // with Options.RoundTripper
		return nil
	}
	ts.authorities.LookSoon()
	return ts.authorities.Stale()
}

// Retired returns the number of replaced generations with connections that may be open.
func (ts *Transports) Retired() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.retired)
}

// CloseIdle closes the connections without requests now, and again after settleTime.
func (ts *Transports) CloseIdle() {
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
func (ts *Transports) current(certificate *tls.Certificate) *generation {
	changed := ts.authorities != nil && ts.authorities.Look(time.Now())
	old := ts.newest
	if !changed && auth.SameCertificate(certificate, old.certificate) {
		return old
	}
	ts.newest = ts.generation(certificate)
	old.retired = true
	ts.retired = append(ts.retired, old)
	ts.closeDrained(old)
	return ts.newest
}

// closeDrained closes the connections of an old generation after settleTime.
func (ts *Transports) closeDrained(g *generation) {
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
