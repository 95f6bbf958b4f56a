package apiclient

import (
	"io"
	"net/http"
	"time"
)

// InClusterAt is InCluster with another environment and directory.
var InClusterAt = inCluster

// InClusterNamespaceAt is InClusterNamespace with another environment and directory.
var InClusterNamespaceAt = inClusterNamespace

// Transport returns the transport of the next request.
func (c *Client) Transport() http.RoundTripper { return c.transports.peek(c.credentials.certificate()) }

// Inflate reads gzip as the body of an answer is read.
func Inflate(r io.ReadCloser) io.Reader { return newInflater(r) }

// StatusErrorOf makes an error of an answer.
func (c *Client) StatusErrorOf(code int, header http.Header, body []byte) error {
	return c.statusErrorOf(code, header, body, Credentials{})
}

// WithPatience returns a configuration whose transport waits less for signs of life.
func WithPatience(c Config, handshake, pingAfter, pingTimeout time.Duration) Config {
	c.timeouts = timeouts{dial: dialTimeout, handshake: handshake, pingAfter: pingAfter, pingTimeout: pingTimeout}
	return c
}

// Retired counts the transports that were replaced and still have something to close.
func (c *Client) Retired() int {
	c.transports.mu.Lock()
	defer c.transports.mu.Unlock()
	return len(c.transports.retired)
}

// Remembered counts the tokens that no error may quote.
func (c *Client) Remembered() int {
	c.credentials.sent.mu.Lock()
	defer c.credentials.sent.mu.Unlock()
	return len(c.credentials.sent.tokens)
}
