package websocket

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Source is what Watch wraps: an *apiclient.TypedClient[T] or *apiclient.PartialClient[T].
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
	pulse  pulse
}

// Watch returns a ListerWatcher that asks the same server for the same objects as source does and watches them over
// WebSocket. The handshake is a request like every other: sent with the client's transport, and so with its
// credentials, certificates and proxies. A client with an http.RoundTripper of its own needs one that hands connections
// over, as an *http.Transport and what wraps one do.
func Watch[T any](source Source[T]) *ListerWatcher[T] {
	return &ListerWatcher[T]{source: source, pulse: defaultPulse}
}

// Resource returns what is listed and watched.
func (w *ListerWatcher[T]) Resource() api.Resource { return w.source.Resource() }

// Namespace returns the namespace that the wrapped source is confined to, or "".
func (w *ListerWatcher[T]) Namespace() string {
	if confined, ok := w.source.(interface{ Namespace() string }); ok {
		return confined.Namespace()
	}
	return ""
}

// identity keeps a watch over WebSocket apart from one over HTTP.
type identity struct{ source any }

// Identity returns a comparable value: what is equal reads the same objects in the same way.
func (w *ListerWatcher[T]) Identity() any { return identity{w.source.Identity()} }

// List lists over HTTP, as the wrapped source does.
func (w *ListerWatcher[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	return w.source.List(ctx, o, each)
}

// Watch opens a WebSocket with the first iteration and closes it when the loop ends. It yields what a watch over HTTP
// would yield, errors included; beside those an *UpgradeError where the server answered and it was no WebSocket, an
// *apiclient.RedirectError where it sent the handshake elsewhere, and ErrProtocol where it broke the rules of RFC 6455.
// A connection on which nothing came for 30 seconds is asked whether it lives, and ends with a net.Error that is a
// time-out when nothing comes for another 15.
func (w *ListerWatcher[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return w.source.WatchOver(ctx, o, w.pulse.open)
}
