package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	ws "github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

const (
	handshakeTimeout = 45 * time.Second
	readBuffer       = 32 << 10
	writeBuffer      = 1 << 10
)

// Source is what Watch wraps: an *apiclient.Resource[T] or *apiclient.Projection[T].
type Source[T any] interface {
	api.ListerWatcher[T]
	// WatchOver watches over a stream that open opens.
	WatchOver(ctx context.Context, o api.Options[T], open apiclient.Opener) iter.Seq2[api.Event[T], error]
	// Identity is comparable, and equal for what reads the same objects.
	Identity() any
}

// ListerWatcher lists over HTTP and watches over WebSocket. It implements api.ListerWatcher[T] and is safe for
// concurrent use. It has no counterpart in client-go.
type ListerWatcher[T any] struct {
	source Source[T]
}

// Watch returns a ListerWatcher that asks the same server for the same objects as source does, with the same
// credentials, and watches them over WebSocket.
//
// It dials as the client's *http.Transport does, and shakes hands with the same TLS configuration. Where the client has
// another kind of http.RoundTripper, each watch ends with an error that says so.
func Watch[T any](source Source[T]) *ListerWatcher[T] {
	return &ListerWatcher[T]{source: source}
}

// dialerOf makes a dialler that connects as a transport does.
func dialerOf(transport http.RoundTripper) (ws.Dialer, error) {
	t, ok := transport.(*http.Transport)
	if !ok {
		return ws.Dialer{}, fmt.Errorf("websocket: a %T does not tell how to dial; the client needs an *http.Transport", transport)
	}
	t = t.Clone() // which waits until the transport has settled its TLS configuration
	d := ws.Dialer{
		NetDialContext:    t.DialContext,
		NetDialTLSContext: t.DialTLSContext,
		Proxy:             t.Proxy,
		TLSClientConfig:   t.TLSClientConfig,
		HandshakeTimeout:  handshakeTimeout,
		ReadBufferSize:    readBuffer,
		WriteBufferSize:   writeBuffer,
	}
	if d.NetDialContext == nil {
		d.NetDialContext = (&net.Dialer{}).DialContext
	}
	if d.TLSClientConfig == nil {
		d.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	// The transport offers HTTP/2, over which this handshake does not exist.
	d.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return d, nil
}

// Resource returns what is listed and watched.
func (w *ListerWatcher[T]) Resource() api.Resource { return w.source.Resource() }

// identity keeps a watch over WebSocket apart from one over HTTP.
type identity struct{ source any }

// Identity returns a comparable value: what is equal reads the same objects in the same way.
func (w *ListerWatcher[T]) Identity() any { return identity{w.source.Identity()} }

// List lists over HTTP, as the wrapped source does.
func (w *ListerWatcher[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	return w.source.List(ctx, o, each)
}

// Watch opens a WebSocket with the first iteration and closes it when the loop ends. It yields what a watch over HTTP
// would yield, errors included. A connection on which neither an event nor the answer to a ping came for 45 seconds
// ends with a net.Error that is a time-out.
func (w *ListerWatcher[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return w.source.WatchOver(ctx, o, open)
}

// open makes the handshake and waits for the first message, whose type tells the media type.
func open(req *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
	dialer, err := dialerOf(o.Transport)
	if err != nil {
		return nil, "", err
	}
	u := *req.URL
	u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	header := req.Header.Clone()
	header.Del("Accept-Encoding")
	// kube-apiserver answers 403, with an empty body, where Origin is missing or another host.
	header.Set("Origin", (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}).String())
	stop := closeWith(req.Context(), &dialer)
	conn, resp, err := dialer.DialContext(req.Context(), u.String(), header)
	if err != nil {
		stop()
		return nil, "", handshakeError(resp, err)
	}
	s := newStream(conn, stop)
	return s, s.mediaType(), nil
}

// closeWith makes a dialler's connection close when ctx ends before stop is called: the library itself looks at the
// context only while it connects, and then at its deadline.
func closeWith(ctx context.Context, dialer *ws.Dialer) (stop func()) {
	var stops []func() bool
	closing := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(dialing context.Context, network, address string) (net.Conn, error) {
			c, err := dial(dialing, network, address)
			if err == nil {
				stops = append(stops, context.AfterFunc(ctx, func() { _ = c.Close() }))
			}
			return c, err
		}
	}
	dialer.NetDialContext = closing(dialer.NetDialContext)
	if dialer.NetDialTLSContext != nil {
		dialer.NetDialTLSContext = closing(dialer.NetDialTLSContext)
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// handshakeError hands the answer of a server that did not switch protocols on to whoever turns it into a Status.
func handshakeError(resp *http.Response, err error) error {
	if resp == nil || !errors.Is(err, ws.ErrBadHandshake) || resp.StatusCode == http.StatusSwitchingProtocols {
		return fmt.Errorf("websocket: handshake: %w", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // the library has read at most 1,024 bytes of it already
	return &apiclient.HandshakeError{StatusCode: resp.StatusCode, Header: resp.Header, Body: body, Err: err}
}
