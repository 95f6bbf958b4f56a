package apiclient

import (
	"net/http"
	"time"

	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/transport"
)

// InClusterAt is InCluster with another environment and folder.
var InClusterAt = inCluster

// InClusterNamespaceAt is InClusterNamespace with another environment and folder.
var InClusterNamespaceAt = inClusterNamespace

// StatusErrorOf makes an error from an answer.
func (c *Client) StatusErrorOf(code int, header http.Header, body []byte) error {
	return c.fail(call.Answer{Code: code, Header: header, Body: body}).Err
}

// WithTimeouts returns a configuration whose transport has shorter time limits.
func WithTimeouts(c Config, handshake, pingAfter, pingTimeout time.Duration) Config {
	c.timeouts = transport.Timeouts{Handshake: handshake, PingAfter: pingAfter, PingTimeout: pingTimeout}
	return c
}

// Retired returns the number of replaced transports with connections that are still open.
func (c *Client) Retired() int { return c.sender.Transports().Retired() }

// Remembered returns the number of tokens that errors must not quote.
func (c *Client) Remembered() int { return c.sent.Tokens() }
