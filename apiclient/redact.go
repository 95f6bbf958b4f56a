package apiclient

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

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
