package websocket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	ws "github.com/gorilla/websocket"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/quote"
)

const (
	maxErrorBody     = 64 << 10         // of the answer to a failed handshake; a Status with many causes fits
	maxQuotedURL     = 512              // bytes of a URL in an error
	errorBodyTimeout = 10 * time.Second // for it may never end

	// readBuffer is what a connection keeps while it is idle. What a frame has beyond it is read past it, so that a larger
	// one saves nothing but calls (BenchmarkWatch, BenchmarkIdleWatches).
	readBuffer = 4 << 10
)

// UpgradeError is an answer that was no failure and no WebSocket either: a proxy that drops the Upgrade header and
// passes the rest on, or a server that speaks something else.
type UpgradeError struct {
	StatusCode int
	Reason     string
}

// Error says what came instead.
func (e *UpgradeError) Error() string {
	return fmt.Sprintf("websocket: handshake: the server answered %d %s, %s", e.StatusCode, http.StatusText(e.StatusCode), e.Reason)
}

// handshakeTimeoutError is a handshake that was not answered. It is a net.Error.
type handshakeTimeoutError struct{ after time.Duration }

func (e *handshakeTimeoutError) Error() string {
	return fmt.Sprintf("websocket: handshake: no answer within %v", e.after)
}

// Timeout says that it is one, as net.Error asks.
func (*handshakeTimeoutError) Timeout() bool { return true }

// Temporary says that trying again may help, as net.Error asks.
func (*handshakeTimeoutError) Temporary() bool { return true }

// open shakes hands and waits for the first message, whose type tells the media type. Nothing but the request's context
// and the pulse limits that wait: an initial list may take as long as it takes.
func (p pulse) open(req *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
	conn, w, err := connect(req, o)
	if err != nil {
		return nil, "", err
	}
	o.OnOpen()
	s := newStream(req.Context(), conn, w, p, o.MaxObjectBytes)
	return s, s.mediaType(), nil
}

// handshake is the exchange that opens a WebSocket. The library speaks the protocol and the client's transport sends the
// request, so that everything that is true of requests is true of this one. As the library will only write to a
// connection, it gets a wire, whose first write is the library's request and whose first read is the transport's answer.
type handshake struct {
	request *http.Request
	opening apiclient.Opening
	written bytes.Buffer // by the library
	err     error        // why there is no WebSocket
}

// noBuffers keeps the library from holding a buffer for messages to send, for none is ever sent.
type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

// connect opens a WebSocket.
func connect(req *http.Request, o apiclient.Opening) (*ws.Conn, *wire, error) {
	h := &handshake{request: req, opening: o}
	w := &wire{shaking: h, begun: time.Now()}
	// The library is not asked to compress (RFC 7692): kube-apiserver cannot.
	dialer := ws.Dialer{NetDialContext: w.dial, ReadBufferSize: readBuffer, WriteBufferPool: noBuffers{}}
	conn, resp, err := dialer.DialContext(req.Context(), "ws://"+req.URL.Host, nil)
	switch {
	case h.err != nil:
		return nil, nil, h.err
	case errors.Is(err, ws.ErrBadHandshake):
		reason := fmt.Sprintf("which switches to %.64q in another way than a WebSocket", resp.Header.Get("Upgrade"))
		return nil, nil, &UpgradeError{StatusCode: resp.StatusCode, Reason: reason}
	case err != nil:
		return nil, nil, fmt.Errorf("websocket: handshake: %w", err)
	}
	return conn, w, nil
}

// answer sends what the library wrote, and returns the answer's head and the connection behind it.
func (h *handshake) answer() (head []byte, body io.ReadWriteCloser, err error) {
	asked, err := http.ReadRequest(bufio.NewReader(&h.written))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(h.request.Context())
	if after := h.opening.HeaderTimeout; after > 0 {
		timer := time.AfterFunc(after, func() { cancel(&handshakeTimeoutError{after: after}) })
		defer timer.Stop()
	}
	resp, err := h.opening.Transport.RoundTrip(h.dressed(ctx, asked.Header))
	if err != nil {
		var late *handshakeTimeoutError
		if errors.As(context.Cause(ctx), &late) {
			err = late
		}
		cancel(nil)
		return nil, nil, err
	}
	conn, err := h.accept(resp)
	if err != nil {
		cancel(nil)
		_ = resp.Body.Close() // there is an error already
		return nil, nil, err
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = resp.Header.Write(&b) // it never fails in memory
	b.WriteString("\r\n")
	return b.Bytes(), cancelling{conn, cancel}, nil
}

// cancelling is a connection whose context ends with it: not before, for who wrapped the transport may look at it.
type cancelling struct {
	io.ReadWriteCloser
	cancel context.CancelCauseFunc
}

// Close closes the connection.
func (c cancelling) Close() error {
	err := c.ReadWriteCloser.Close()
	c.cancel(nil)
	return err
}

// dressed is the request for a watch with what makes a handshake of it.
func (h *handshake) dressed(ctx context.Context, wanted http.Header) *http.Request {
	req := h.request.Clone(ctx)
	for name, values := range wanted {
		switch name {
		case "Upgrade", "Connection", "Sec-Websocket-Key", "Sec-Websocket-Version":
			req.Header[name] = values
		}
	}
	// Nothing here inflates the answer to a handshake that failed.
	req.Header.Del("Accept-Encoding")
	// kube-apiserver answers 403, with an empty body, where Origin is missing.
	req.Header.Set("Origin", (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}).String())
	return req
}

// accept returns the connection of an answer that switches protocols. The library will look at the rest of it.
func (h *handshake) accept(resp *http.Response) (io.ReadWriteCloser, error) {
	switch code := resp.StatusCode; {
	case code >= http.StatusBadRequest:
		return nil, &apiclient.HandshakeError{StatusCode: code, Header: resp.Header, Body: beginning(resp.Body), Err: ws.ErrBadHandshake}
	case code >= http.StatusMultipleChoices && resp.Header.Get("Location") != "":
		return nil, h.redirected(resp)
	case code != http.StatusSwitchingProtocols:
		return nil, &UpgradeError{StatusCode: code, Reason: "and does not switch protocols"}
	}
	// What was not asked for must not be answered (RFC 6455, 4.1). The library would believe an extension, and inflate.
	for _, name := range []string{"Sec-Websocket-Extensions", "Sec-Websocket-Protocol"} {
		if v := resp.Header.Get(name); v != "" {
			return nil, &UpgradeError{StatusCode: resp.StatusCode, Reason: fmt.Sprintf("with %s %.64q, which was not asked for", name, v)}
		}
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, &UpgradeError{
			StatusCode: resp.StatusCode,
			Reason:     fmt.Sprintf("and the client's transport, a %T, does not hand over the connection", h.opening.Transport),
		}
	}
	return conn, nil
}

// redirected refuses to follow: another place must not see the credentials, and the right one asks for no detour.
func (h *handshake) redirected(resp *http.Response) error {
	bare := func(u *url.URL) string {
		return quote.Short((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), maxQuotedURL)
	}
	to, err := h.request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return &UpgradeError{StatusCode: resp.StatusCode, Reason: "whose Location is no URL"}
	}
	return &apiclient.RedirectError{From: bare(h.request.URL), To: bare(to), Method: h.request.Method}
}

// beginning reads as much of an answer as makes an error: not much, and not for long.
func beginning(body io.ReadCloser) []byte {
	timer := time.AfterFunc(errorBodyTimeout, func() { _ = body.Close() })
	defer timer.Stop()
	b, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // what did arrive is better than nothing
	return b
}
