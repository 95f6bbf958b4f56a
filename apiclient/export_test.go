package apiclient

import (
	"io"
	"net/http"
	"time"
)

// InClusterAt is InCluster with another environment and folder.
var InClusterAt = inCluster

// InClusterNamespaceAt is InClusterNamespace with another environment and folder.
var InClusterNamespaceAt = inClusterNamespace

// Transport returns the transport of the next request.
func (c *Client) Transport() http.RoundTripper { return c.transports.peek(c.credentials.certificate()) }

// Inflate decompresses gzip as the body of an answer is decompressed.
func Inflate(r io.ReadCloser) io.Reader { return newInflater(r) }

// StatusErrorOf makes an error from an answer.
func (c *Client) StatusErrorOf(code int, header http.Header, body []byte) error {
	return c.statusErrorOf(code, header, body, Credentials{})
}

// WithTimeouts returns a configuration whose transport has shorter time limits.
func WithTimeouts(c Config, handshake, pingAfter, pingTimeout time.Duration) Config {
	c.timeouts = timeouts{dial: dialTimeout, handshake: handshake, pingAfter: pingAfter, pingTimeout: pingTimeout}
	return c
}

// Retired returns the number of replaced transports with connections that are still open.
func (c *Client) Retired() int {
	c.transports.mu.Lock()
	defer c.transports.mu.Unlock()
	return len(c.transports.retired)
}

// Remembered returns the number of tokens that errors must not quote.
func (c *Client) Remembered() int {
	c.credentials.sent.mu.Lock()
	defer c.credentials.sent.mu.Unlock()
	return len(c.credentials.sent.tokens)
}
