package exec

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/regularfile"
)

// kind is the kind of the object in the request and in the answer.
const kind = "ExecCredential"

// request is the object in KUBERNETES_EXEC_INFO. It is the same in both versions.
type request struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Spec       requestSpec `json:"spec"`
}

type requestSpec struct {
	Cluster     *requestCluster `json:"cluster,omitempty"`
	Interactive bool            `json:"interactive"`
}

type requestCluster struct {
	Server             string          `json:"server"`
	TLSServerName      string          `json:"tls-server-name,omitempty"`
	Insecure           bool            `json:"insecure-skip-tls-verify,omitempty"`
	CAData             []byte          `json:"certificate-authority-data,omitempty"`
	ProxyURL           string          `json:"proxy-url,omitempty"`
	DisableCompression bool            `json:"disable-compression,omitempty"`
	Config             json.RawMessage `json:"config,omitempty"`
}

// info returns the text of the request. The protocol has the authorities as data, also if they are in a file.
func (o *Options) info(interactive bool) ([]byte, error) {
	r := request{Kind: kind, APIVersion: o.APIVersion, Spec: requestSpec{Interactive: interactive}}
	if c := o.Cluster; c != nil {
		ca := c.CAData
		if len(ca) == 0 && c.CAFile != "" {
			var err error
			if ca, err = regularfile.Read(c.CAFile); err != nil {
				return nil, fmt.Errorf("the cluster's authorities: %w", err)
			}
		}
		r.Spec.Cluster = &requestCluster{
			Server: c.Server, TLSServerName: c.TLSServerName, Insecure: c.Insecure, CAData: ca,
			DisableCompression: c.DisableCompression, Config: c.Config,
		}
		if c.ProxyURL != nil {
			r.Spec.Cluster.ProxyURL = c.ProxyURL.String()
		}
	}
	return json.Marshal(r)
}

// answer is what a plugin prints.
type answer struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Status     *answerStatus `json:"status"`
}

type answerStatus struct {
	ExpirationTimestamp *string `json:"expirationTimestamp"`
	Token               string  `json:"token"`
	Certificate         string  `json:"clientCertificateData"`
	Key                 string  `json:"clientKeyData"`
}

// credentials are the credentials of one answer.
type credentials struct {
	apiclient.Credentials
	pem     string    // the certificate, to notice a change
	expires time.Time // zero if unknown
}

// parse decodes an answer. Its errors quote only the version and the kind.
func parse(text []byte, version string, now time.Time) (*credentials, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, explain(text, err))
	}
	switch {
	case a.Kind != kind:
		return nil, fmt.Errorf("%w: its kind is %.80q", ErrMalformed, a.Kind)
	case a.APIVersion != version:
		return nil, fmt.Errorf("%w: %.80q instead of %s", ErrVersion, a.APIVersion, version)
	case a.Status == nil || a.Status.Token == "" && a.Status.Certificate == "" && a.Status.Key == "":
		return nil, ErrNoCredentials
	case strings.ContainsFunc(a.Status.Token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, fmt.Errorf("%w: the token holds a line break or another control character", ErrMalformed)
	}
	c := &credentials{Credentials: apiclient.Credentials{Token: apiclient.NewSecret(a.Status.Token)}}
	if err := c.setExpiry(a.Status.ExpirationTimestamp); err != nil {
		return nil, err
	}
	if err := c.setCertificate(a.Status.Certificate, a.Status.Key); err != nil {
		return nil, err
	}
	if c.expiredAt(now) {
		return nil, fmt.Errorf("%w: on %s, and it is %s", ErrExpired, c.expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return c, nil
}

// explain returns an error that names the place of the fault, and quotes nothing.
func explain(text []byte, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON from byte %d on", syntax.Offset)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s has the wrong type", wrong.Field)
	}
	return errors.New("it is not an object")
}

func (c *credentials) setExpiry(text *string) error {
	if text == nil {
		return nil
	}
	expires, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return fmt.Errorf("%w: status.expirationTimestamp is not a time of RFC 3339", ErrMalformed)
	}
	c.expires = expires
	return nil
}

// setCertificate parses certificate and key. The credentials expire with the certificate, or earlier.
func (c *credentials) setCertificate(certificate, key string) error {
	switch {
	case certificate == "" && key == "":
		return nil
	case key == "":
		return fmt.Errorf("%w: it comes without a key", ErrCertificate)
	case certificate == "":
		return fmt.Errorf("%w: there is a key, and no certificate", ErrCertificate)
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificate, err) // crypto/tls quotes neither
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("%w: %w", ErrCertificate, err)
		}
	}
	if c.expires.IsZero() || pair.Leaf.NotAfter.Before(c.expires) {
		c.expires = pair.Leaf.NotAfter
	}
	c.Certificate, c.pem = &pair, certificate
	return nil
}

func (c *credentials) expiredAt(now time.Time) bool {
	return !c.expires.IsZero() && !now.Before(c.expires)
}

// is reports whether a client got these credentials.
func (c *credentials) is(given apiclient.Credentials) bool {
	return c.Token.Reveal() == given.Token.Reveal() && c.Certificate == given.Certificate
}

// keepCertificate keeps the previous certificate if it is the same, because a client opens new connections for a new
// certificate.
func (c *credentials) keepCertificate(before *credentials) {
	if before != nil && c.pem == before.pem {
		c.Certificate = before.Certificate
	}
}
