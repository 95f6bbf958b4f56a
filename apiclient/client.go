package apiclient

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/leatproject/leat/api"
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
	fieldManager    string
	onRequest       func(Request) // nil if there is no hook
	codecs          *codecs
}

// New makes a client. It sends no request. It reads the files that the configuration names, so a missing file is an
// error of New. Invalid configuration is a *FieldError. It corresponds to rest.RESTClientFor of client-go.
func New(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client := &Client{
		headerTimeout:   max(0, cmp.Or(c.ResponseHeaderTimeout, defaultHeaderTimeout)),
		disableProtobuf: c.DisableProtobuf,
		maxObjectBytes:  cmp.Or(c.MaxObjectBytes, codec.DefaultMaxObjectBytes),
		fieldManager:    c.FieldManager,
		onRequest:       c.OnRequest,
		codecs:          &codecs{tables: sync.OnceValue(codec.NewTables)},
	}
	o := c.call(client.headerTimeout)
	o.Fail = client.fail
	var err error
	if client.sender, err = call.New(o); err != nil {
		return nil, asFieldError(err)
	}
	client.sent = client.sender.Sent()
	return client, nil
}

// call returns the options of a sender.
func (c Config) call(headerTimeout time.Duration) call.Options {
	o := call.Options{
		Server: c.Host, UserAgent: c.UserAgent, DisableCompression: c.DisableCompression, Retry: call.Retry(c.Retry), Auth: c.auth(),
		Transport: transport.Options{
			CAData: c.TLS.CAData, CAFile: c.TLS.CAFile, ServerName: c.TLS.ServerName, Insecure: c.TLS.Insecure,
			ProxyURL: c.ProxyURL, DialContext: c.DialContext, DisableHTTP2: c.DisableHTTP2,
			RoundTripper: c.Transport, Wrap: c.WrapTransport, HeaderTimeout: headerTimeout, Timeouts: c.timeouts,
		},
	}
	if c.Limiter != nil {
		o.Limit = func(ctx context.Context) error { return limit(ctx, c.Limiter) }
	}
	if c.OnWarning != nil {
		o.OnWarning = func(w call.Warning) { c.OnWarning(Warning(w)) }
	}
	return o
}

// auth returns the credentials.
func (c Config) auth() auth.Options {
	o := auth.Options{
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		CertData: c.TLS.CertData, CertFile: c.TLS.CertFile, KeyData: c.TLS.KeyData, KeyFile: c.TLS.KeyFile,
		Impersonation: auth.Impersonation(c.Impersonate),
	}
	if c.Credentials != nil {
		o.Source, o.SourceName = source{c.Credentials}, fmt.Sprintf("%T", c.Credentials)
	}
	return o
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

// ownTables is the number of codecs with tables of their own, which are in the processor's cache while a watch is busy.
// The codecs after them share tables. Otherwise 500 resources with 20 objects take 16 MB for tables.
const ownTables = 16

// codecOptions returns the options of a new codec.
func (c *Client) codecOptions() codec.Options {
	o := codec.Options{MaxObjectBytes: c.maxObjectBytes}
	if c.codecs.made.Add(1) > ownTables {
		o.Tables = c.codecs.tables()
	}
	return o
}

// codecs holds the codecs of a client that are in use. Clients of one type and one resource share a codec, because a
// codec takes several KB, and more with shared parts. Without sharing, informers for 10,000 namespaces would take tens
// of MB for codecs. The references are weak: a codec is freed with the last client that uses it. Its entry stays.
type codecs struct {
	all    sync.Map // from codecKey to weak.Pointer[codec.Codec[T]]
	made   atomic.Int64
	tables func() *codec.Tables // returns those of the codecs after the first ones
}

// codecKey identifies a codec. Two resources do not share one, because they have few parts in common.
type codecKey struct {
	object   reflect.Type
	resource api.Resource
}

// codecOf returns the client's codec for objects of a resource that are decoded as T. It panics if T is not a pointer
// to a struct.
func codecOf[T any](c *Client, r api.Resource) *codec.Codec[T] {
	key := codecKey{reflect.TypeFor[T](), r}
	for {
		known, _ := c.codecs.all.LoadOrStore(key, weak.Pointer[codec.Codec[T]]{})
		if shared := known.(weak.Pointer[codec.Codec[T]]).Value(); shared != nil {
			return shared
		}
		made := codec.New[T](c.codecOptions())
		if c.codecs.all.CompareAndSwap(key, known, weak.Make(made)) {
			return made
		} // otherwise another goroutine has made one meanwhile
	}
}
