package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
	"github.com/leatproject/leat/apiclient/internal/call"
	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/apiclient/internal/transport"
)

// Config has the address of a server and the credentials of a user. It comes from kubeconfig.Load, from InCluster, or
// from code. Only Host is required. All ways to print or marshal it hide credentials.
//
// A call ends with its context. There is no overall time limit, because it would cut watches and large lists. Dialling
// takes at most 30 seconds and a TLS handshake 10 seconds; ResponseHeaderTimeout bounds the wait for the answer to a
// read. Without Limiter, there is no limit on the rate of requests, because servers limit it: they have priority and
// fairness, and answer 429 with Retry-After.
//
// It corresponds to rest.Config of client-go, without QPS and Burst.
type Config struct {
	// Host is the server's URL: "https://10.0.0.1:6443". It may have a path: "https://proxy.example/k8s/clusters/c1".
	Host string

	// BearerToken is sent with every request.
	BearerToken Secret
	// BearerTokenFile is a file with the token. It must be a regular file of at most 4 MiB, or a link to one. It wins
	// over BearerToken. A request checks whether the file was replaced if the last check was more than five seconds
	// ago. An answer of 401 reads the file in any case. If it cannot be read, the client continues with the last token.
	BearerTokenFile string

	// Username and Password are sent with every request as basic authentication.
	Username string
	Password Secret

	// Credentials returns credentials that change while the program runs, for example those of an exec plugin. It
	// conflicts with the fields above and with a client certificate in TLS.
	Credentials CredentialSource

	// Impersonate makes the server treat the request as another user's. The server allows this only to users with the
	// verb impersonate.
	Impersonate Impersonate

	// TLS configures the verification of the server and the client certificate. It conflicts with Transport.
	TLS TLS

	// UserAgent replaces the default, which has the program's name and version.
	UserAgent string

	// FieldManager is the name under which the server records the fields of creates, updates and patches whose options
	// name no field manager. Empty means that the server takes the user agent up to its first slash.
	FieldManager string

	// ProxyURL is the proxy (http, https, socks5 or socks5h) of all requests. If it is nil, the environment decides
	// (HTTPS_PROXY, NO_PROXY and so on). Its user and password are sent only to the proxy. The name of an https proxy
	// is verified against the authorities of the system and of TLS; the proxy does not get the client certificate. If a
	// proxy does not connect, the error is a *ProxyError.
	ProxyURL *url.URL

	// DisableCompression does not request gzip. Compression costs CPU on both sides and saves nothing on a local
	// network.
	DisableCompression bool

	// DisableHTTP2 uses HTTP/1.1, with one connection per concurrent request. Use it if a proxy or load balancer does
	// not handle HTTP/2 well. It has no effect on Transport.
	DisableHTTP2 bool

	// DisableProtobuf requests JSON even if the Go type can decode protobuf.
	DisableProtobuf bool

	// MaxObjectBytes is the largest size in bytes of one encoded object, one frame of a watch or one document, and so
	// bounds the memory that an answer takes. More is a *codec.TooLargeError. Zero means codec.DefaultMaxObjectBytes,
	// which is several times the limit of kube-apiserver. The client reads 64 KiB of the body of an error in any case,
	// so that it can decode a Status.
	MaxObjectBytes int

	// Retry says how often and for how long the client repeats a call.
	Retry Retry

	// Limiter delays all requests except watches, repeated requests included. It can be a *rate.Limiter of
	// golang.org/x/time/rate, which is a token bucket. If it is nil, requests are not delayed.
	Limiter Limiter

	// OnRequest gets each request that was sent when its body is closed; the body of a watch is closed when the watch
	// ends. A repeated request counts again. The goroutine that closes the body calls it, and waits for it. It must be
	// safe for concurrent use.
	OnRequest func(Request)

	// OnWarning gets the warnings of the server, each text once in the life of the client; the client remembers the
	// last 256 texts. It runs before the call returns, on the goroutine of the call, and must be safe for concurrent
	// use.
	OnWarning func(Warning)

	// ResponseHeaderTimeout bounds the wait for the head of the answer to a get, a list or a watch. The body may take
	// longer. Writes have no such bound, because a client that gives up cannot know whether the write was done. Zero
	// means two minutes, because a server answers or gives up within one. A negative value means no limit.
	ResponseHeaderTimeout time.Duration

	// DialContext opens connections instead of a net.Dialer. TLS is used over them as usual. It disables the proxies of
	// the environment.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// Transport sends requests instead of leat's own transport. It conflicts with TLS, ProxyURL and DialContext. A
	// request that it gets has credentials.
	Transport http.RoundTripper

	// WrapTransport returns a RoundTripper that sends requests with next, for example to add tracing headers or to log.
	// New calls it once, and the result sends every attempt of every request, redirects and the handshakes of package
	// websocket included. It must be safe for concurrent use. It gets requests without the header Authorization, and
	// next adds that header if the server is still the same. So a log of the request shows no credential. The request
	// that it gives to next must have the context of the request that it got, or a child of it. It conflicts with
	// Transport.
	WrapTransport func(next http.RoundTripper) http.RoundTripper

	timeouts transport.Timeouts // other values only in tests
}

// Impersonate names the user that the server should use for a request. The zero value changes nothing.
type Impersonate struct {
	UserName string
	UID      string
	Groups   []string
	Extra    map[string][]string
}

// TLS configures how the client verifies the server and which certificate it sends. Data win over files, as in a
// kubeconfig. A file must be a regular file of at most 4 MiB, or a link to one; a FIFO, a terminal or a device is an
// error.
//
// A request checks whether the files were replaced if the last check was more than five seconds ago. If so, this
// request and later ones get new connections. Requests in flight continue on the old connections, which are closed when
// they are idle. If a file is missing, empty or half written, the client continues with the last good content. The next
// error about a certificate, or the next 401, then names the file.
//
// It corresponds to rest.TLSClientConfig of client-go.
type TLS struct {
	// CAData or CAFile are the authorities, in PEM, that may sign the server's certificate. With neither, the client
	// trusts the authorities of the system.
	CAData []byte
	CAFile string

	// CertData or CertFile, with KeyData or KeyFile, are the client's certificate and private key, in PEM.
	CertData []byte
	CertFile string
	KeyData  Secret
	KeyFile  string

	// ServerName is the name in the server's certificate, if it is not the host of the URL.
	ServerName string

	// Insecure accepts every certificate. Any server in the path can then read the credentials.
	Insecure bool
}

// FieldError says which field of a Config is invalid, and why. It never contains a credential.
type FieldError struct {
	Field string // "Host", "TLS.CAFile"
	Err   error
}

// Error names the field and the reason.
func (e *FieldError) Error() string { return "apiclient: Config." + e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// asFieldError returns an error of the packages below with the type of this package.
func asFieldError(err error) error {
	var field *auth.FieldError
	if errors.As(err, &field) {
		return &FieldError{Field: field.Field, Err: field.Err}
	}
	return err
}

// Validate checks the fields of the configuration. It does not read the files that they name. The error is a
// *FieldError.
func (c Config) Validate() error {
	if _, err := call.ParseServer(c.Host); err != nil {
		return &FieldError{Field: "Host", Err: err}
	}
	if err := c.auth().Validate(); err != nil {
		return asFieldError(err)
	}
	if err := transport.CheckProxy(c.ProxyURL); err != nil {
		return &FieldError{Field: "ProxyURL", Err: err}
	}
	if field, reason := c.invalid(); field != "" {
		return &FieldError{Field: field, Err: errors.New(reason)}
	}
	return nil
}

// invalid returns a field that is invalid, and the reason.
func (c Config) invalid() (field, reason string) {
	const withTransport = "it conflicts with Transport"
	switch {
	case c.TLS.Insecure && (len(c.TLS.CAData) > 0 || c.TLS.CAFile != ""):
		return "TLS.Insecure", "it conflicts with the authorities (CAData or CAFile)"
	case !auth.ValidHeader(c.UserAgent):
		return "UserAgent", "it cannot be sent in a header, because it has a control character"
	case c.MaxObjectBytes < 0:
		return "MaxObjectBytes", fmt.Sprintf("it is %d; it must not be negative", c.MaxObjectBytes)
	case c.Transport == nil:
	case !c.TLS.isZero():
		return "TLS", withTransport
	case c.ProxyURL != nil:
		return "ProxyURL", withTransport
	case c.DialContext != nil:
		return "DialContext", withTransport
	case c.WrapTransport != nil:
		return "WrapTransport", withTransport
	}
	return "", ""
}

func (t TLS) isZero() bool {
	return len(t.CAData) == 0 && t.CAFile == "" && len(t.CertData) == 0 && t.CertFile == "" &&
		t.KeyData.IsZero() && t.KeyFile == "" && t.ServerName == "" && !t.Insecure
}

// shownConfig has the visible part of a Config. All ways to print or marshal a Config use it, so a new field of Config
// is hidden until it is added here.
type shownConfig struct {
	Host               string      `json:"host,omitempty"`
	BearerToken        Secret      `json:"bearerToken,omitzero"`
	BearerTokenFile    string      `json:"bearerTokenFile,omitempty"`
	Username           string      `json:"username,omitempty"`
	Password           Secret      `json:"password,omitzero"`
	Credentials        string      `json:"credentials,omitempty"`
	Impersonate        Impersonate `json:"impersonate,omitzero"`
	TLS                shownTLS    `json:"tls,omitzero"`
	UserAgent          string      `json:"userAgent,omitempty"`
	ProxyURL           string      `json:"proxyURL,omitempty"`
	DisableCompression bool        `json:"disableCompression,omitempty"`
	DisableHTTP2       bool        `json:"disableHTTP2,omitempty"`
	DisableProtobuf    bool        `json:"disableProtobuf,omitempty"`
	Transport          string      `json:"transport,omitempty"`
}

type shownTLS struct {
	CAData     string `json:"caData,omitempty"`
	CAFile     string `json:"caFile,omitempty"`
	CertData   string `json:"certData,omitempty"`
	CertFile   string `json:"certFile,omitempty"`
	KeyData    Secret `json:"keyData,omitzero"`
	KeyFile    string `json:"keyFile,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	Insecure   bool   `json:"insecure,omitempty"`
}

func (c Config) shown() shownConfig {
	s := shownConfig{
		Host:               secret.HideUser(c.Host),
		BearerToken:        c.BearerToken,
		BearerTokenFile:    c.BearerTokenFile,
		Username:           c.Username,
		Password:           c.Password,
		Impersonate:        c.Impersonate,
		TLS:                c.TLS.shown(),
		UserAgent:          c.UserAgent,
		ProxyURL:           shownProxy(c.ProxyURL),
		DisableCompression: c.DisableCompression,
		DisableHTTP2:       c.DisableHTTP2,
		DisableProtobuf:    c.DisableProtobuf,
	}
	if c.Credentials != nil {
		s.Credentials = fmt.Sprintf("%T", c.Credentials)
	}
	if c.Transport != nil {
		s.Transport = fmt.Sprintf("%T", c.Transport)
	}
	return s
}

func (t TLS) shown() shownTLS {
	return shownTLS{
		CAData:     size(t.CAData),
		CAFile:     t.CAFile,
		CertData:   size(t.CertData),
		CertFile:   t.CertFile,
		KeyData:    t.KeyData,
		KeyFile:    t.KeyFile,
		ServerName: t.ServerName,
		Insecure:   t.Insecure,
	}
}

// String returns the configuration without credentials.
func (c Config) String() string { return fmt.Sprintf("apiclient.Config%+v", c.shown()) }

// GoString returns String.
func (c Config) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// MarshalJSON returns the configuration without credentials. It is meant for logs and not for storage.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }

// String returns the TLS configuration without its key.
func (t TLS) String() string { return fmt.Sprintf("apiclient.TLS%+v", t.shown()) }

// GoString returns String.
func (t TLS) GoString() string { return t.String() }

// Format writes String for every verb.
func (t TLS) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, t.String()) }

// MarshalJSON returns the TLS configuration without its key. It is meant for logs and not for storage.
func (t TLS) MarshalJSON() ([]byte, error) { return json.Marshal(t.shown()) }

func shownProxy(u *url.URL) string {
	if u == nil {
		return ""
	}
	return secret.HideUser(u.String())
}

func size(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return fmt.Sprintf("%d bytes", len(b))
}
