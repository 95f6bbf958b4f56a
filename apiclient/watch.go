package apiclient

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/codec"
)

// Opener opens the stream of a watch by another protocol than HTTP. Package websocket has one. It gets the HTTP request
// of the watch, with credentials. It returns the frames as an HTTP watch would send them, and their media type. The end
// of the request's context ends the stream. If the answer is not successful, the error is a *HandshakeError.
type Opener func(req *http.Request, o Opening) (stream io.ReadCloser, mediaType string, err error)

// Opening has the other arguments of an Opener.
type Opening struct {
	Transport      http.RoundTripper // the client's transport, with the newest certificates
	HeaderTimeout  time.Duration     // time limit for the head of the answer; 0 means none
	MaxObjectBytes int               // limit of one frame
	OnOpen         func()            // the Opener calls it when the server has accepted the watch; never nil
}

// HandshakeError is an answer to the request of an Opener that is not successful. WatchOver turns it into the error
// that an HTTP request with this answer would return.
type HandshakeError struct {
	StatusCode int
	Header     http.Header
	Body       []byte // may be incomplete
	Err        error
}

// Error is the text of the handshake's error. WatchOver reads the answer.
func (e *HandshakeError) Error() string { return "apiclient: handshake: " + e.Err.Error() }

// Unwrap returns the error of the handshake.
func (e *HandshakeError) Unwrap() error { return e.Err }

// Watch opens a watch with one HTTP request at the first iteration, and closes it when the loop ends. It blocks between
// events. The last value may be an error: a *apierrors.StatusError if the server sent one, the error of ctx if ctx
// ended, or a wrapped io.ErrUnexpectedEOF if the stream is incomplete. errors.Is recognises a refused or reset
// connection. Watch never repeats a request; the reflector does that. TimeoutSeconds is for the server: Watch does not
// end a watch that the server keeps open for longer. The reflector does that too, for every source. Watch corresponds
// to rest.Request.Watch of client-go.
func (p *PartialClient[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return p.watchOver(ctx, o, p.acceptWatch(o), func(ctx context.Context, r request, _ func()) (io.ReadCloser, string, error) {
		return p.client.read(ctx, r)
	})
}

// WatchOver is Watch with the stream that open returns.
func (p *PartialClient[T]) WatchOver(ctx context.Context, o api.Options[T], open Opener) iter.Seq2[api.Event[T], error] {
	return p.watchOver(ctx, o, p.acceptWatch(o), func(ctx context.Context, r request, onOpen func()) (io.ReadCloser, string, error) {
		return p.client.openOver(ctx, r, open, onOpen)
	})
}

// openOver opens a stream with an Opener.
func (c *Client) openOver(ctx context.Context, r request, open Opener, onOpen func()) (stream io.ReadCloser, mediaType string, err error) {
	r.Observe = c.observe(r)
	o := Opening{HeaderTimeout: c.headerTimeout, MaxObjectBytes: c.maxObjectBytes, OnOpen: onOpen}
	stream, err = c.sender.Open(ctx, r.Call, func(req *http.Request, rt http.RoundTripper) (io.ReadCloser, *call.Answer, error) {
		o.Transport = rt
		var s io.ReadCloser
		s, mediaType, err = open(req, o)
		var refused *HandshakeError
		if errors.As(err, &refused) {
			return nil, &call.Answer{Code: refused.StatusCode, Header: refused.Header, Body: refused.Body}, err
		}
		return s, nil, err
	})
	return stream, mediaType, err
}

func (p *PartialClient[T]) watchOver(
	ctx context.Context, o api.Options[T], accept string, open func(context.Context, request, func()) (io.ReadCloser, string, error),
) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) {
		o.Watch = true
		r, err := p.collectionRequest("watch", http.MethodGet, &o.ListOptions)
		if err != nil {
			yield(api.Event[T]{}, err)
			return
		}
		r.Accept, r.Once, r.Unlimited = accept, true, true
		ctx, dog := newWatchdog(ctx, o.ListOptions)
		defer dog.stop()
		o := o
		o.OnOpen = once(o.OnOpen)
		stream, mediaType, err := open(ctx, r, o.OnOpen)
		if err != nil {
			yield(api.Event[T]{}, r.fail(err))
			return
		}
		defer stream.Close()
		if err := p.pump(ctx, stream, mediaType, o, dog, yield); err != nil {
			yield(api.Event[T]{}, r.fail(err))
		}
	}
}

// once returns a function that calls f at its first call. f may be nil.
func once(f func()) func() {
	return func() {
		if f != nil {
			f()
			f = nil
		}
	}
}

// pump yields the events of a stream. It returns nil if the loop ended, or if the server ended the stream regularly.
func (p *PartialClient[T]) pump(
	ctx context.Context, stream io.Reader, mediaType string, o api.Options[T], dog *watchdog, yield func(api.Event[T], error) bool,
) error {
	if o.OnWait != nil || dog != nil {
		stream = &observed{stream, o.OnWait, dog}
	}
	events, err := p.codec.NewEventReader(ctx, stream, mediaType, p.resource, o)
	if err != nil {
		return err
	}
	o.OnOpen()
	for {
		event, err := events.Next()
		switch {
		case err == io.EOF && ctx.Err() == nil:
			return nil
		case ctx.Err() != nil:
			return call.Ended(ctx)
		case err != nil:
			return err
		}
		dog.saw(event.Type, event.InitialEventsEnd)
		if !yield(event, nil) {
			return nil
		}
	}
}

// acceptWatch returns the Accept header of a watch.
func (p *PartialClient[T]) acceptWatch(o api.Options[T]) string {
	return p.codec.Accept(codec.AcceptOptions{JSON: p.client.disableProtobuf, DropManagedFields: o.DropManagedFields})
}
