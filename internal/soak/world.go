package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
)

var (
	mills         = api.Resource{Group: "soak.leat.test", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
	parts         = api.Resource{Group: "soak.leat.test", Version: "v1", Kind: "Part", Plural: "parts", Namespaced: true}
	eventResource = api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
)

// mill is what somebody asks for: a number of parts.
type mill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              millSpec   `json:"spec"`
	Status            millStatus `json:"status"`
}

type millSpec struct {
	Parts int    `json:"parts"`
	Text  string `json:"text"`
}

type millStatus struct {
	Parts int    `json:"parts"`
	Text  string `json:"text"` // that of the spec for which the parts are there
}

// part is what the controller makes for a mill.
type part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// world is the server, and the way to it.
type world struct {
	server  *testserver.Server
	address string
	stop    context.CancelFunc
	served  chan error
}

// newWorld starts a server.
func newWorld(seed uint64, http2 bool) (*world, error) {
	s := testserver.New(testserver.Options{
		Seed: seed, TLS: true, HTTP2: http2, History: 500, RequestLog: -1, BookmarkInterval: 500 * time.Millisecond,
	})
	s.Register(mills, parts)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("soak: listen: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &world{server: s, address: listener.Addr().String(), stop: stop, served: make(chan error, 1)}
	go func() { w.served <- s.Serve(ctx, listener) }()
	return w, nil
}

// end stops the server.
func (w *world) end() error {
	w.stop()
	return <-w.served
}

// client returns a client whose connections go through l. Every other client speaks HTTP/2 if the server does.
func (w *world) client(l *line, index int) (*apiclient.Client, error) {
	return apiclient.New(apiclient.Config{
		Host: "https://" + w.address, TLS: apiclient.TLS{CAData: w.server.CA()}, DialContext: l.dial, DisableHTTP2: index%2 == 1,
		ResponseHeaderTimeout: 5 * time.Second,
	})
}

// informerOptions are those of all informers: short pauses, because a round is short, and short watches.
func informerOptions[T api.Object](log *zap.Logger) informer.Options[T] {
	return informer.Options[T]{
		Tuning: reflector.Tuning{
			BackoffBase:     20 * time.Millisecond,
			BackoffMax:      500 * time.Millisecond,
			MinWatchTimeout: 2 * time.Second,
			PageSize:        20,
		}, Logger: log,
	}
}

// line is the network between a client and the server. It can be cut.
type line struct {
	mu    sync.Mutex // guards the fields below
	cut   bool
	conns map[*lineConn]struct{}
}

func newLine() *line { return &line{conns: map[*lineConn]struct{}{}} }

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &lineConn{Conn: conn, line: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}, conn.Close())
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// set cuts the line, and with it the connections that are open, or mends it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	l.cut = cut
	var broken []*lineConn
	for c := range l.conns {
		broken = append(broken, c)
	}
	l.mu.Unlock()
	if !cut {
		return
	}
	for _, c := range broken {
		_ = c.Close() // what was closed meanwhile is cut as well
	}
}

// lineConn is a connection over a line.
type lineConn struct {
	net.Conn
	line *line
}

func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}
