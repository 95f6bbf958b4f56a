package apiclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/apiclient/internal/transport"
	"github.com/leatproject/leat/codec"
)

// defaultHeaderTimeout is twice the time limit of kube-apiserver for a request.
const defaultHeaderTimeout = 2 * time.Minute

// Client sends requests to one server as one user. All clients that NewTyped, NewPartial and Subresource make from it
// share its connections. It is safe for concurrent use and starts no goroutine. It corresponds to rest.Interface of
// client-go.
type Client struct {
	sender          *call.Sender
	sent            *secret.Sent  // credentials that errors must not quote
	headerTimeout   time.Duration // 0 for none
	disableProtobuf bool
	maxObjectBytes  int
	onRequest       func(Request) // nil if there is no hook
	codecs          *codecs
}

// New makes a client. It sends no request. It reads the files that the configuration names, so a missing file is an
// error of New. Invalid configuration is a *FieldError. It corresponds to rest.RESTClientFor of client-go.
func New(c Config) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	client := &Client{
		headerTimeout:   max(0, cmp.Or(c.ResponseHeaderTimeout, defaultHeaderTimeout)),
		disableProtobuf: c.DisableProtobuf,
		maxObjectBytes:  cmp.Or(c.MaxObjectBytes, codec.DefaultMaxObjectBytes),
		onRequest:       c.OnRequest,
		codecs:          &codecs{},
	}
	o, err := client.callOptions(c)
	if err == nil {
		client.sender, err = call.New(o)
	}
	var field *auth.FieldError
	if errors.As(err, &field) {
		return nil, &FieldError{Field: field.Field, Err: field.Err}
	}
	if err != nil {
		return nil, err
	}
	client.sent = client.sender.Sent()
	return client, nil
}

// callOptions returns the options of the room below.
func (c *Client) callOptions(from Config) (call.Options, error) {
	server, err := parseHost(from.Host)
	o := call.Options{
		Server: server, UserAgent: from.UserAgent, DisableCompression: from.DisableCompression,
		Auth: auth.Options{
			Token: from.BearerToken, TokenFile: from.BearerTokenFile, Username: from.Username, Password: from.Password,
			CertData: from.TLS.CertData, CertFile: from.TLS.CertFile, KeyData: from.TLS.KeyData, KeyFile: from.TLS.KeyFile,
			Impersonation: auth.Impersonation(from.Impersonate),
		},
		Transport: transport.Options{
			CAData: from.TLS.CAData, CAFile: from.TLS.CAFile, ServerName: from.TLS.ServerName, Insecure: from.TLS.Insecure,
			ProxyURL: from.ProxyURL, DialContext: from.DialContext, DisableHTTP2: from.DisableHTTP2,
			RoundTripper: from.Transport, Wrap: from.WrapTransport, HeaderTimeout: c.headerTimeout, Timeouts: from.timeouts,
		},
		Retry: call.Retry(from.Retry), Fail: c.fail,
	}
	if from.Credentials != nil {
		o.Auth.Source, o.Auth.SourceName = source{from.Credentials}, fmt.Sprintf("%T", from.Credentials)
	}
	if from.Limiter != nil {
		o.Limit = func(ctx context.Context) error { return limit(ctx, from.Limiter) }
	}
	if from.OnWarning != nil {
		o.OnWarning = func(w call.Warning) { from.OnWarning(Warning(w)) }
	}
	return o, err
}

// Host returns the server's URL. It has no credentials.
func (c *Client) Host() string { return c.sender.Server().String() }

// CloseIdleConnections closes connections without requests. The client can still be used.
func (c *Client) CloseIdleConnections() { c.sender.Transports().CloseIdle() }

// String names the server, without credentials.
func (c *Client) String() string { return "apiclient.Client(" + c.Host() + ")" }

// GoString returns String.
func (c *Client) GoString() string { return c.String() }

// Format writes String for every verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }
