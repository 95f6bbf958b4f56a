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
	errorBodyTimeout = 10 * time.Second // because the answer may never end

	// readBuffer is the size of the buffer that an idle connection keeps. Larger frames are read without the buffer, so
	// a larger buffer would only save calls (BenchmarkWatch, BenchmarkIdleWatches).
	readBuffer = 4 << 10
)

// UpgradeError is an answer to a handshake that is neither an error nor a WebSocket. A proxy may have removed the
// Upgrade header, or the server uses another protocol.
type UpgradeError struct {
	StatusCode int
	Reason     string
}

// Error names the answer.
func (e *UpgradeError) Error() string {
	return fmt.Sprintf("websocket: handshake: the server answered %d %s, %s", e.StatusCode, http.StatusText(e.StatusCode), e.Reason)
}

// handshakeTimeoutError is a handshake without an answer. It is a net.Error.
type handshakeTimeoutError struct{ after time.Duration }

func (e *handshakeTimeoutError) Error() string {
	return fmt.Sprintf("websocket: handshake: no answer within %v", e.after)
}

// Timeout is true. It is part of net.Error.
func (*handshakeTimeoutError) Timeout() bool { return true }

// Temporary is true. It is part of net.Error.
func (*handshakeTimeoutError) Temporary() bool { return true }

// open does the handshake and waits for the first message, whose type decides the media type. Only the request's
// context and the pings limit this wait, because an initial list may take long.
func (p keepAlive) open(req *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
	conn, w, err := connect(req, o)
	if err != nil {
		return nil, "", err
	}
	o.OnOpen()
	s := newStream(req.Context(), conn, w, p, o.MaxObjectBytes)
	return s, s.mediaType(), nil
}

// handshake opens a WebSocket. The library handles the protocol, and the client's transport sends the request, so that
// it is like every other request. The library needs a connection and gets a wire: the first write to it is the
// library's request, and the first read is the transport's answer.
type handshake struct {
	request *http.Request
	opening apiclient.Opening
	written bytes.Buffer // the library's request
	err     error        // why the handshake failed
}

// noBuffers makes the library keep no buffer for messages to send, because a watch sends none.
type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

// connect opens a WebSocket.
func connect(req *http.Request, o apiclient.Opening) (*ws.Conn, *wire, error) {
	h := &handshake{request: req, opening: o}
	w := &wire{handshake: h, begun: time.Now()}
	// kube-apiserver does not support compression (RFC 7692), so the library does not request it.
	dialer := ws.Dialer{NetDialContext: w.dial, ReadBufferSize: readBuffer, WriteBufferPool: noBuffers{}}
	conn, resp, err := dialer.DialContext(req.Context(), "ws://"+req.URL.Host, nil)
	switch {
	case h.err != nil:
		return nil, nil, h.err
	case errors.Is(err, ws.ErrBadHandshake):
		reason := fmt.Sprintf("which switches to the protocol %.64q but is not a valid WebSocket handshake", resp.Header.Get("Upgrade"))
		return nil, nil, &UpgradeError{StatusCode: resp.StatusCode, Reason: reason}
	case err != nil:
		return nil, nil, fmt.Errorf("websocket: handshake: %w", err)
	}
	return conn, w, nil
}

// answer sends the library's request and returns the head of the answer and the connection.
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
	resp, err := h.opening.Transport.RoundTrip(h.upgradeRequest(ctx, asked.Header))
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
		_ = resp.Body.Close() // the earlier error is returned
		return nil, nil, err
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = resp.Header.Write(&b) // never fails in memory
	b.WriteString("\r\n")
	return b.Bytes(), cancelling{conn, cancel}, nil
}

// cancelling is a connection that cancels its context when it is closed, and not earlier, because a wrapper of the
// transport may use the context.
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

// upgradeRequest returns the request of a watch with the headers of a handshake.
func (h *handshake) upgradeRequest(ctx context.Context, wanted http.Header) *http.Request {
	req := h.request.Clone(ctx)
	for name, values := range wanted {
		switch name {
		case "Upgrade", "Connection", "Sec-Websocket-Key", "Sec-Websocket-Version":
			req.Header[name] = values
		}
	}
	// The answer to a failed handshake is not decompressed.
	req.Header.Del("Accept-Encoding")
	// Without Origin, kube-apiserver answers 403 with an empty body.
	req.Header.Set("Origin", (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}).String())
	return req
}

// accept returns the connection of an answer that switches protocols. The library checks the other parts of the answer.
func (h *handshake) accept(resp *http.Response) (io.ReadWriteCloser, error) {
	switch code := resp.StatusCode; {
	case code >= http.StatusBadRequest:
		return nil, &apiclient.HandshakeError{StatusCode: code, Header: resp.Header, Body: beginning(resp.Body), Err: ws.ErrBadHandshake}
	case code >= http.StatusMultipleChoices && resp.Header.Get("Location") != "":
		return nil, h.redirected(resp)
	case code != http.StatusSwitchingProtocols:
		return nil, &UpgradeError{StatusCode: code, Reason: "which does not switch protocols"}
	}
	// An answer must not have extensions and protocols that were not requested (RFC 6455, 4.1). The library would
	// accept an extension and decompress.
	for _, name := range []string{"Sec-Websocket-Extensions", "Sec-Websocket-Protocol"} {
		if v := resp.Header.Get(name); v != "" {
			return nil, &UpgradeError{StatusCode: resp.StatusCode, Reason: fmt.Sprintf("with %s %.64q, which the client did not request", name, v)}
		}
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, &UpgradeError{
			StatusCode: resp.StatusCode,
			Reason:     fmt.Sprintf("but the client's transport %T does not return the connection", h.opening.Transport),
		}
	}
	return conn, nil
}

// redirected returns the error for a redirect, which is never followed, because another server must not get the
// credentials.
func (h *handshake) redirected(resp *http.Response) error {
	bare := func(u *url.URL) string {
		return quote.Short((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), maxQuotedURL)
	}
	to, err := h.request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return &UpgradeError{StatusCode: resp.StatusCode, Reason: "whose Location is not a URL"}
	}
	return &apiclient.RedirectError{From: bare(h.request.URL), To: bare(to), Method: h.request.Method}
}

// beginning reads a part of an answer for an error, within limits of size and time.
func beginning(body io.ReadCloser) []byte {
	timer := time.AfterFunc(errorBodyTimeout, func() { _ = body.Close() })
	defer timer.Stop()
	b, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // a partial body is still useful
	return b
}
