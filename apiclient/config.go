package apiclient

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says where a server is and who asks. It comes from kubeconfig.Load, from InCluster, or is written by hand; the
// zero value lacks only Host. However it is printed or marshalled, it shows no credential.
//
// There is no overall time-out, because one would cut watches and large lists: a call ends with its context. Dialling
// takes at most 30 seconds, a TLS handshake 10, and ResponseHeaderTimeout bounds the wait for an answer to a read.
// There is no limit on the rate of requests either, unless Limiter is set: servers have priority and fairness for that,
// and say with 429 and Retry-After when they have had enough.
//
// It corresponds to rest.Config of client-go, without its QPS and Burst.
type Config struct {
	// Host is the server's URL, with a path where the server stands behind one: "https://10.0.0.1:6443",
	// "https://proxy.example/k8s/clusters/c1".
	Host string

	// BearerToken is sent with every request.
	BearerToken Secret
	// BearerTokenFile is a file with the token: a regular file of at most 4 MiB, or a link to one. It wins over
	// BearerToken. A request checks whether the file was replaced if the last check was more than five seconds ago, and
	// an answer of 401 reads it in any case. If it cannot be read, the last token is used on.
	BearerTokenFile string

	// Username and Password are sent with every request as basic authentication.
	Username string
	Password Secret

	// Credentials says who asks where that changes while the program runs, as with an exec plugin. It excludes the fields
	// above and a client certificate in TLS.
	Credentials CredentialSource

	// Impersonate asks the server to act as somebody else, which it allows to those who may impersonate.
	Impersonate Impersonate

	// TLS says how the server is verified, and the client too. It is not looked at when Transport is set.
	TLS TLS

	// UserAgent replaces the one that is made from the program's name and version.
	UserAgent string

	// ProxyURL is the proxy (http, https, socks5 or socks5h) for all requests. Empty means what the environment says
	// (HTTPS_PROXY, NO_PROXY and so on). A user and a password in it are sent to the proxy alone. An https proxy is
	// verified by its own name, against the system's authorities and those of TLS, and sees no client certificate; what
	// a proxy answers instead of connecting is a *ProxyError.
	ProxyURL *url.URL

	// DisableCompression stops asking for gzip, which costs CPU on both sides and saves nothing on a local network.
	DisableCompression bool

	// DisableHTTP2 gives each request a connection of its own while it lasts, with HTTP/1.1, for what stands in the way
	// and does not carry HTTP/2 well. It has no effect beside Transport.
	DisableHTTP2 bool

	// DisableProtobuf asks for JSON even where the Go type can read protobuf.
	DisableProtobuf bool

	// MaxObjectBytes bounds one object, one frame of a watch and one document on the wire, and with it the memory that an
	// answer can cost: more is a *codec.TooLargeError. Zero means codec.DefaultMaxObjectBytes, several times what
	// kube-apiserver accepts. Bodies of errors are read to 64 KiB whatever it says, so that a Status survives.
	MaxObjectBytes int

	// Retry says how often and for how long a call is sent again that the server did not take.
	Retry Retry

	// Limiter holds back every request but those of watches, the ones that are sent again included. A *rate.Limiter of
	// golang.org/x/time/rate, a token bucket, is one. Nil holds nothing back.
	Limiter Limiter

	// OnRequest is told of each sending of a request when it has ended: when its body is closed, which for a watch is its
	// end. It is called on the goroutine that closes, must be safe for concurrent use, and holds up the call while it runs.
	OnRequest func(Request)

	// OnWarning is told what the server warns of, each text once in the life of the client; the latest 256 texts are
	// remembered. It is called before the call returns, on its goroutine, and must be safe for concurrent use.
	OnWarning func(Warning)

	// ResponseHeaderTimeout bounds the wait for the head of the answer to a get, a list or a watch, whose body may then
	// take as long as it takes. Writes have no such bound: giving up on one says nothing about whether it was done.
	// Zero means two minutes (a server answers or gives up within one), a negative value means for ever.
	ResponseHeaderTimeout time.Duration

	// DialContext opens connections instead of a net.Dialer; TLS is spoken over them as usual. The environment's proxies
	// are then not asked for: who dials by himself knows the way.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// Transport sends requests instead of the transport that New makes from TLS, ProxyURL and DialContext, which must
	// then be empty. Credentials are added before a request reaches it.
	Transport http.RoundTripper

	patience patience
}

// Impersonate is who the server shall act as. The zero value impersonates nobody.
type Impersonate struct {
	UserName string
	UID      string
	Groups   []string
	Extra    map[string][]string
}

func (i Impersonate) isZero() bool {
	return i.UserName == "" && i.UID == "" && len(i.Groups) == 0 && len(i.Extra) == 0
}

// TLS configures how the client verifies the server and how it identifies itself. Data win over files, as in a
// kubeconfig. A file must be a regular file of at most 4 MiB, or a link to one; a FIFO, a terminal or a device is an
// error.
//
// A request checks whether the files were replaced if the last check was more than five seconds ago. If so, this request
// and later ones get new connections. Requests in flight continue on the old connections, which are closed when they
// are idle. A file that is missing, empty or half written changes nothing: the last good content is used on, and the
// next error about a certificate or a 401 names the file.
// It corresponds to rest.TLSClientConfig of client-go.
type TLS struct {
	// CAData or CAFile hold the authorities, in PEM, that may have signed the server's certificate. With neither, those
	// of the system are trusted.
	CAData []byte
	CAFile string

	// CertData or CertFile, with KeyData or KeyFile, are the client's certificate and private key, in PEM.
	CertData []byte
	CertFile string
	KeyData  Secret
	KeyFile  string

	// ServerName is the name that the server's certificate must carry, where it is not the host of the URL.
	ServerName string

	// Insecure accepts any certificate: whoever answers sees the credentials.
	Insecure bool
}

func (t TLS) isZero() bool {
	return len(t.CAData) == 0 && t.CAFile == "" && len(t.CertData) == 0 && t.CertFile == "" &&
		t.KeyData.IsZero() && t.KeyFile == "" && t.ServerName == "" && !t.Insecure
}

// FieldError says which field of a Config is wrong and why. It never holds the value of a credential.
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

// Validate finds what is wrong with the fields themselves, as New does before it reads the files that they name. The
// error is a *FieldError.
func (c Config) Validate() error { return c.validate() }

// validate finds what is wrong with the fields themselves; files are read by those who need them.
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
	if c.UserAgent != "" && !validHeader(c.UserAgent) {
		return fieldErrorf("UserAgent", "it cannot stand in a header: it holds a control character")
	}
	if c.MaxObjectBytes < 0 {
		return fieldErrorf("MaxObjectBytes", "it is %d, and no object is that small", c.MaxObjectBytes)
	}
	return c.validateTransport()
}

func (c Config) validateCredentials() error {
	bearer := !c.BearerToken.IsZero() || c.BearerTokenFile != ""
	basic := c.Username != "" || !c.Password.IsZero()
	switch {
	case c.Credentials != nil && (bearer || basic):
		return fieldErrorf("Credentials", "they exclude a token, a user name and a password beside them")
	case c.Credentials != nil && c.TLS.hasCertificate():
		return fieldErrorf("Credentials", "they exclude a client certificate beside them")
	case bearer && basic:
		return fieldErrorf("Username", "a user name and a bearer token exclude each other")
	case c.Username == "" && basic:
		return fieldErrorf("Username", "it is empty, and Password is not")
	case strings.Contains(c.Username, ":"):
		return fieldErrorf("Username", "it holds a colon, which basic authentication cannot carry")
	case !validHeader(c.BearerToken.Reveal()):
		return fieldErrorf("BearerToken", "it cannot stand in a header: it holds a line break or another control character")
	}
	return c.Impersonate.validate()
}

func (i Impersonate) validate() error {
	if i.UserName == "" && !i.isZero() {
		return fieldErrorf("Impersonate.UserName", "it is empty, and the rest of Impersonate is not")
	}
	if !validHeader(i.UserName) || !validHeader(i.UID) {
		return fieldErrorf("Impersonate", "a name or UID holds a control character")
	}
	for _, g := range i.Groups {
		if !validHeader(g) {
			return fieldErrorf("Impersonate.Groups", "%q holds a control character", g)
		}
	}
	for key, values := range i.Extra {
		if key == "" {
			return fieldErrorf("Impersonate.Extra", "it has an empty key")
		}
		for _, v := range values {
			if !validHeader(v) {
				return fieldErrorf("Impersonate.Extra", "the value of %q holds a control character", key)
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
		return fieldErrorf("TLS.KeyData", "there is a client certificate and no key for it")
	case hasKey && !hasCert:
		return fieldErrorf("TLS.CertData", "there is a client key and no certificate for it")
	case t.Insecure && (len(t.CAData) > 0 || t.CAFile != ""):
		return fieldErrorf("TLS.Insecure", "it would make nothing of the authorities that are given beside it")
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
		return fieldErrorf("TLS", "it has no effect on the Transport that is given beside it")
	case c.ProxyURL != nil:
		return fieldErrorf("ProxyURL", "it has no effect on the Transport that is given beside it")
	case c.DialContext != nil:
		return fieldErrorf("DialContext", "it has no effect on the Transport that is given beside it")
	}
	return nil
}

// parseHost reads Config.Host. What it says never quotes more of the URL than is known to be no password.
func parseHost(host string) (*url.URL, error) {
	if host == "" {
		return nil, fieldErrorf("Host", "it is empty: the URL of an API server is needed")
	}
	u, err := url.Parse(host)
	shown := host
	if i := strings.IndexAny(host, "?#"); i >= 0 {
		shown = host[:i] // what follows may be a token
	}
	switch {
	case strings.Contains(host, "@"):
		return nil, fieldErrorf("Host", "it holds a user or password, which have fields of their own")
	case !strings.Contains(host, "://"):
		return nil, fieldErrorf("Host", "%q has no scheme: write https://%s or http://%s", shown, shown, shown)
	case err != nil:
		return nil, fieldErrorf("Host", "%q is not a URL: %w", shown, bareURLError(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fieldErrorf("Host", "%q has scheme %q, which is neither https nor http", shown, u.Scheme)
	case u.Host == "" || u.Hostname() == "":
		return nil, fieldErrorf("Host", "%q names no host", shown)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fieldErrorf("Host", "%q has a query or a fragment, which a server's address cannot have", shown)
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
		return fieldErrorf("ProxyURL", "it names no host")
	}
	return nil
}

// validHeader tells whether a value may stand in a header. It is stricter than net/http, whose error comes too late.
func validHeader(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
