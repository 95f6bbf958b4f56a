package apiclient_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/listerwatchertest"
)

// rig is a server with TLS and HTTP/2 in memory, in a bubble. It reports the user and the connection of each request.
type rig struct {
	t         *testing.T
	authority *authority
	tls       atomic.Pointer[tls.Config] // of the next handshake
	host      string
	dial      listerwatchertest.Dial
	opened    atomic.Int32
	closed    atomic.Int32
	refuse    atomic.Pointer[func(*http.Request) bool]
	events    chan string // events for the watches in flight

	mu   sync.Mutex
	seen []string // "jane over 1 with Bearer x"
}

// newRig makes a rig that requests a client certificate, as kube-apiserver does, and accepts every certificate.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, authority: newAuthority(t), host: "https://server.memory", events: make(chan string)}
	config := r.authority.server(t, unchanged)
	config.ClientAuth = tls.RequestClientCert
	r.tls.Store(config)
	outer := &tls.Config{
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.now(), nil },
		GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &r.now().Certificates[0], nil },
	}
	dial := listerwatchertest.ServeTLS(t, http.HandlerFunc(r.serve), outer)
	r.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: c, number: r.opened.Add(1), closed: &r.closed}, nil
	}
	return r
}

// onRig runs a test in a bubble, with a rig.
func onRig(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

func (r *rig) now() *tls.Config {
	c := r.tls.Load().Clone()
	c.NextProtos = []string{"h2", "http/1.1"}
	return c
}

// counted reports that a connection is closed.
type counted struct {
	net.Conn
	number int32
	closed *atomic.Int32
	once   sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.closed.Add(1) })
	return c.Conn.Close()
}

func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	name := "nobody"
	if certs := req.TLS.PeerCertificates; len(certs) > 0 {
		name = certs[0].Subject.CommonName
	}
	if token := req.Header.Get("Authorization"); token != "" {
		name += " with " + token
	}
	r.mu.Lock()
	r.seen = append(r.seen, name)
	r.mu.Unlock()
	if refuse := r.refuse.Load(); refuse != nil && (*refuse)(req) {
		answer(401, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)(w, req)
		return
	}
	if req.URL.Query().Get("watch") == "" {
		answer(200, jsonType, onePod)(w, req)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event := <-r.events:
			_, _ = io.WriteString(w, event)
		case <-req.Context().Done():
			return
		}
	}
}

func (r *rig) config() apiclient.Config {
	return apiclient.Config{Host: r.host, DialContext: r.dial, TLS: apiclient.TLS{CAData: r.authority.pem}}
}

// view returns a client that is closed at the end of its test.
func (r *rig) view(c apiclient.Config) *apiclient.PartialClient[*pod] {
	r.t.Helper()
	return apiclient.NewPartial[*pod](newClient(r.t, c), podResource, "")
}

// users sends a request and returns the user that the server saw. There are several if the request was repeated.
func (r *rig) users(v *apiclient.PartialClient[*pod]) ([]string, error) {
	r.t.Helper()
	r.mu.Lock()
	r.seen = nil
	r.mu.Unlock()
	_, err := v.Get(r.t.Context(), web, metav1.GetOptions{})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, err
}

func (r *rig) is(v *apiclient.PartialClient[*pod], want ...string) {
	r.t.Helper()
	got, err := r.users(v)
	require.NoError(r.t, err)
	require.Equal(r.t, want, got)
}

// watch opens a watch. next sends it an event and returns the version of the event.
func (r *rig) watch(v *apiclient.PartialClient[*pod]) (next func(version int) string, stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	got, done := make(chan string, 16), make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range v.Watch(ctx, api.Options[*pod]{}) {
			if err != nil {
				got <- err.Error()
				return
			}
			got <- e.ResourceVersion
		}
	}()
	synctest.Wait()
	next = func(version int) string {
		r.events <- frame(version)
		return <-got
	}
	return next, func() {
		cancel()
		<-done
	}
}

func in(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// hangUp closes connections after their requests have ended.
func hangUp(v *apiclient.PartialClient[*pod]) {
	synctest.Wait()
	v.Client().CloseIdleConnections()
}
