package apiclient

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
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
		ctx, w, err := p.openWatch(ctx, &o, accept, open)
		if w != nil {
			defer w.close()
		}
		if err == nil {
			err = w.pump(ctx, yield)
		}
		if w != nil {
			err = w.request.fail(err)
		}
		if err != nil {
			yield(api.Event[T]{}, err)
		}
	}
}

// openWatch is a watch in progress. It has what the loop needs while it waits. Large values would stay on the stack of
// the goroutine otherwise, and a stack of more than 3 KB in use does not shrink to 8 KB.
type openWatch[T api.Object] struct {
	request request
	dog     *watchdog
	stream  io.ReadCloser // nil if the request failed
	events  *codec.EventReader[T]
}

// openWatch sends the request and reads the head of the answer. The returned context also ends when the watchdog ends
// the watch. If w is not nil, the caller closes it, and wraps the error in the request.
func (p *PartialClient[T]) openWatch(
	ctx context.Context, from *api.Options[T], accept string, open func(context.Context, request, func()) (io.ReadCloser, string, error),
) (_ context.Context, w *openWatch[T], err error) {
	o := *from
	o.Watch = true
	w = &openWatch[T]{}
	if w.request, err = p.collectionRequest("watch", http.MethodGet, &o.ListOptions); err != nil {
		return ctx, nil, err
	}
	w.request.Accept, w.request.Once, w.request.Unlimited = accept, true, true
	ctx, w.dog = newWatchdog(ctx, o.ListOptions)
	o.OnOpen = once(o.OnOpen)
	var mediaType string
	if w.stream, mediaType, err = open(ctx, w.request, o.OnOpen); err != nil {
		return ctx, w, err
	}
	var body io.Reader = w.stream
	if o.OnWait != nil || w.dog != nil {
		body = &observed{w.stream, o.OnWait, w.dog}
	}
	if w.events, err = p.codec.NewEventReader(ctx, body, mediaType, p.resource, o); err == nil {
		o.OnOpen()
	}
	return ctx, w, err
}

func (w *openWatch[T]) close() {
	if w.stream != nil {
		_ = w.stream.Close()
	}
	w.dog.stop()
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

// pump yields the events of the stream. It returns nil if the loop ended, or if the server ended the stream regularly.
func (w *openWatch[T]) pump(ctx context.Context, yield func(api.Event[T], error) bool) error {
	for {
		event, err := w.events.Next()
		switch {
		case err == io.EOF && ctx.Err() == nil:
			return nil
		case ctx.Err() != nil:
			return call.Ended(ctx)
		case err != nil:
			return err
		}
		w.dog.saw(event.Type, event.InitialEventsEnd)
		if !yield(event, nil) {
			return nil
		}
	}
}

// acceptWatch returns the Accept header of a watch.
func (p *PartialClient[T]) acceptWatch(o api.Options[T]) string {
	return p.codec.Accept(codec.AcceptOptions{JSON: p.client.disableProtobuf, DropManagedFields: o.DropManagedFields})
}

// acceptStream accepts all content types. It names JSON because kube-apiserver chooses a content type for the Status of
// a failure before it checks whether the answer is a stream, and answers 406 if text is the only choice.
const acceptStream = "text/plain, application/json, */*"

// Stream opens a subresource that answers a GET with bytes instead of an object, such as the log of a pod:
//
//	log, err := client.Stream(ctx, pods, key, "log", &corev1.PodLogOptions{Container: "app", Follow: true})
//
// options is nil, or url.Values, or a pointer to the options of the subresource, which become query parameters. Stream
// blocks until the answer begins, without a time limit, because a container may write nothing for hours. Until then the
// request is repeated as Retry says. It returns the errors of PartialClient.Get.
//
// Read returns bytes as they arrive, decompressed. Its errors have the name of the operation, and are the error of ctx
// if ctx has ended; io.EOF is the regular end. The caller closes the stream. Close ends a running Read and releases the
// connection. It corresponds to GetLogs(…).Stream(ctx) of client-go, for any resource.
func (c *Client) Stream(ctx context.Context, resource api.Resource, key api.Key, subresource string, options any) (io.ReadCloser, error) {
	e := newEndpoint(c, resource, "")
	query, raw := options.(url.Values)
	if raw {
		options = nil
	}
	r, err := e.objectRequest("get", http.MethodGet, key, subresource, options)
	if err != nil {
		return nil, err
	}
	if raw {
		r.Query = query
	}
	r.Accept = acceptStream
	r.Patient = true
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, r.fail(err)
	}
	return &stream{ReadCloser: resp.Body, fail: r.fail}, nil
}

// stream is the body of an answer. Its errors name the operation.
type stream struct {
	io.ReadCloser
	fail func(error) error
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = s.fail(err)
	}
	return n, err
}
