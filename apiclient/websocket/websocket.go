package websocket

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
)

// Source is the argument of Watch: an *apiclient.TypedClient[T] or *apiclient.PartialClient[T].
type Source[T any] interface {
	api.ListerWatcher[T]
	// WatchOver is Watch with the stream that open returns.
	WatchOver(ctx context.Context, o api.Options[T], open apiclient.Opener) iter.Seq2[api.Event[T], error]
	api.Identified
	codec.PackedSource
}

// ListerWatcher lists over HTTP and watches over WebSocket. It implements api.ListerWatcher[T] and is safe for
// concurrent use. client-go has no such type.
type ListerWatcher[T any] struct {
	source    Source[T]
	keepAlive keepAlive
}

// Watch returns a ListerWatcher for the objects of source that watches over WebSocket. The client's transport sends the
// handshake, so it has the client's credentials, certificates and proxies. If the client has its own http.RoundTripper,
// that must return connections, as an *http.Transport and its wrappers do.
func Watch[T any](source Source[T]) *ListerWatcher[T] {
	return &ListerWatcher[T]{source: source, keepAlive: defaultKeepAlive}
}

// Collection returns the collection of the source.
func (w *ListerWatcher[T]) Collection() api.Collection { return w.source.Collection() }

// Unwrap returns the source, so that the ListerWatcher has its codec, its Packer and its metadata. Watches of the
// metadata use HTTP.
func (w *ListerWatcher[T]) Unwrap() any { return w.source }

// identity makes a source over WebSocket different from the same source over HTTP.
type identity struct{ source any }

// Identity returns a comparable value. It is equal for sources that read the same objects in the same way.
func (w *ListerWatcher[T]) Identity() any { return identity{w.source.Identity()} }

// List lists over HTTP, as the source does.
func (w *ListerWatcher[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	return w.source.List(ctx, o, each)
}

// Watch opens a WebSocket at the first iteration and closes it when the loop ends. It yields the same events and errors
// as a watch over HTTP. There are three more errors: an *UpgradeError if the answer is not a WebSocket, an
// *apiclient.RedirectError if the server redirects the handshake, and ErrProtocol if the server violates RFC 6455. If
// nothing arrives for 30 seconds, Watch sends a ping. If nothing arrives for another 15 seconds, the watch ends with a
// net.Error that is a timeout.
func (w *ListerWatcher[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return w.source.WatchOver(ctx, o, w.keepAlive.open)
}

// Packed does what Packed of the source does, and the watches of the result use a WebSocket too.
func (w *ListerWatcher[T]) Packed(from func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	return &ListerWatcher[*codec.Packed]{source: w.source.Packed(from).(Source[*codec.Packed]), keepAlive: w.keepAlive}
}
