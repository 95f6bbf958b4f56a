package apiclient

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leatproject/leat/apiclient/internal/auth"
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

func (i Impersonate) isZero() bool {
	return i.UserName == "" && i.UID == "" && len(i.Groups) == 0 && len(i.Extra) == 0
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

func (t TLS) isZero() bool {
	return len(t.CAData) == 0 && t.CAFile == "" && len(t.CertData) == 0 && t.CertFile == "" &&
		t.KeyData.IsZero() && t.KeyFile == "" && t.ServerName == "" && !t.Insecure
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

func fieldErrorf(field, format string, a ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, a...)}
}

// Validate checks the fields of the configuration. It does not read the files that they name. The error is a
// *FieldError.
func (c Config) Validate() error { return c.validate() }

// validate checks the fields. Their users read the files.
func (c Config) validate() error {
	if _, err := parseHost(c.Host); err != nil {
		return err
	}
	if err := c.validateCredentials(); err != nil {
		return err
	}
	if err := c.TLS.validate(); err != nil {
		return err
	}
	if c.UserAgent != "" && !auth.ValidHeader(c.UserAgent) {
		return fieldErrorf("UserAgent", "it cannot be sent in a header, because it has a control character")
	}
	if c.MaxObjectBytes < 0 {
		return fieldErrorf("MaxObjectBytes", "it is %d; it must not be negative", c.MaxObjectBytes)
	}
	return c.validateTransport()
}

func (c Config) validateCredentials() error {
	bearer := !c.BearerToken.IsZero() || c.BearerTokenFile != ""
	basic := c.Username != "" || !c.Password.IsZero()
	switch {
	case c.Credentials != nil && (bearer || basic):
		return fieldErrorf("Credentials", "they conflict with BearerToken, BearerTokenFile, Username and Password")
	case c.Credentials != nil && c.TLS.hasCertificate():
		return fieldErrorf("Credentials", "they conflict with the client certificate of TLS")
	case bearer && basic:
		return fieldErrorf("Username", "it conflicts with a bearer token")
	case c.Username == "" && basic:
		return fieldErrorf("Username", "it is empty, but there is a password")
	case strings.Contains(c.Username, ":"):
		return fieldErrorf("Username", "it has a colon, which basic authentication does not allow")
	case !auth.ValidHeader(c.BearerToken.Reveal()):
		return fieldErrorf("BearerToken", "it cannot be sent in a header, because it has a line break or another control character")
	}
	return c.Impersonate.validate()
}

func (i Impersonate) validate() error {
	if i.UserName == "" && !i.isZero() {
		return fieldErrorf("Impersonate.UserName", "it is empty, but other fields of Impersonate are set")
	}
	if !auth.ValidHeader(i.UserName) || !auth.ValidHeader(i.UID) {
		return fieldErrorf("Impersonate", "the name or the UID has a control character")
	}
	for _, g := range i.Groups {
		if !auth.ValidHeader(g) {
			return fieldErrorf("Impersonate.Groups", "%q has a control character", g)
		}
	}
	for key, values := range i.Extra {
		if key == "" {
			return fieldErrorf("Impersonate.Extra", "it has an empty key")
		}
		for _, v := range values {
			if !auth.ValidHeader(v) {
				return fieldErrorf("Impersonate.Extra", "the value of %q has a control character", key)
			}
		}
	}
	return nil
}

func (t TLS) hasCertificate() bool {
	return len(t.CertData) > 0 || t.CertFile != "" || !t.KeyData.IsZero() || t.KeyFile != ""
}

func (t TLS) validate() error {
	hasCert, hasKey := len(t.CertData) > 0 || t.CertFile != "", !t.KeyData.IsZero() || t.KeyFile != ""
	switch {
	case hasCert && !hasKey:
		return fieldErrorf("TLS.KeyData", "a client certificate needs a key")
	case hasKey && !hasCert:
		return fieldErrorf("TLS.CertData", "a client key needs a certificate")
	case t.Insecure && (len(t.CAData) > 0 || t.CAFile != ""):
		return fieldErrorf("TLS.Insecure", "it conflicts with the authorities (CAData or CAFile)")
	}
	return nil
}

func (c Config) validateTransport() error {
	if err := validateProxy(c.ProxyURL); err != nil {
		return err
	}
	if c.Transport == nil {
		return nil
	}
	switch {
	case !c.TLS.isZero():
		return fieldErrorf("TLS", "it conflicts with Transport")
	case c.ProxyURL != nil:
		return fieldErrorf("ProxyURL", "it conflicts with Transport")
	case c.DialContext != nil:
		return fieldErrorf("DialContext", "it conflicts with Transport")
	case c.WrapTransport != nil:
		return fieldErrorf("WrapTransport", "it conflicts with Transport")
	}
	return nil
}

// parseHost parses Config.Host. Its errors quote only the part of the URL that cannot be a password.
func parseHost(host string) (*url.URL, error) {
	if host == "" {
		return nil, fieldErrorf("Host", "it is empty; it must be the URL of an API server")
	}
	u, err := url.Parse(host)
	shown := host
	if i := strings.IndexAny(host, "?#"); i >= 0 {
		shown = host[:i] // the rest may be a token
	}
	switch {
	case strings.Contains(host, "@"):
		return nil, fieldErrorf("Host", "it has a user or password, which have their own fields")
	case !strings.Contains(host, "://"):
		return nil, fieldErrorf("Host", "%q has no scheme: write https://%s or http://%s", shown, shown, shown)
	case err != nil:
		return nil, fieldErrorf("Host", "%q is not a URL: %w", shown, secret.WithoutURL(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fieldErrorf("Host", "%q has the scheme %q; it must be https or http", shown, u.Scheme)
	case u.Host == "" || u.Hostname() == "":
		return nil, fieldErrorf("Host", "%q has no host", shown)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fieldErrorf("Host", "%q has a query or a fragment", shown)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

func validateProxy(u *url.URL) error {
	if u == nil {
		return nil
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return fieldErrorf("ProxyURL", "its scheme is %q; http, https and socks5 are supported", u.Scheme)
	}
	if u.Host == "" {
		return fieldErrorf("ProxyURL", "it has no host")
	}
	return nil
}
