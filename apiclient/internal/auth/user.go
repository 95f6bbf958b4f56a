package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// Options have the credentials of a user.
type Options struct {
	Token     secret.Secret
	TokenFile string // wins over Token

	Username string
	Password secret.Secret

	CertData []byte // the client certificate and its key, in PEM; data win over files
	CertFile string
	KeyData  secret.Secret
	KeyFile  string

	Source     Source // instead of the fields above; may be nil
	SourceName string // of Source, for errors

	Impersonation Impersonation
}

// User adds the credentials of a user to requests. They are headers of each request and not part of the transport, so
// that net/http's rules for redirects apply to them, and a WebSocket handshake can have the same. Credentials that
// change come from a Source: the own one of the Options, or the caller's. A User is safe for concurrent use.
type User struct {
	header http.Header // never changes
	source Source
	name   string
	own    *configured // the source if it is the Options' own; otherwise nil
	sent   *secret.Sent
}

// NewUser reads the files that the options name. It adds what it sends to sent. The error is a *FieldError.
func NewUser(o Options, sent *secret.Sent) (*User, error) {
	u := &User{header: http.Header{}, source: o.Source, name: o.SourceName, sent: sent}
	if o.Username != "" {
		u.header.Set("Authorization", "Basic "+sent.AddPassword(o.Username, o.Password.Reveal()))
	}
	o.Impersonation.addTo(u.header)
	if o.Source != nil {
		return u, nil
	}
	own, err := newConfigured(o)
	if err != nil {
		return nil, err
	}
	u.source, u.own = own, own
	sent.AddToken(own.newest.Token)
	return u, nil
}

// Apply adds the newest credentials to a request's header and returns them. The transport needs the certificate, and
// Refused needs all of them.
func (u *User) Apply(ctx context.Context, h http.Header) (used Credentials, err error) {
	for name, values := range u.header {
		h[name] = slices.Clone(values)
	}
	if used, err = u.source.Credentials(ctx); err != nil {
		return used, err
	}
	if c := used.Certificate; c != nil && (len(c.Certificate) == 0 || c.PrivateKey == nil) {
		return used, fmt.Errorf("apiclient: the client certificate of %s lacks its certificate or its key", u.name)
	}
	if used.Token.IsZero() {
		return used, nil
	}
	token := used.Token.Reveal()
	if !ValidHeader(token) {
		return used, fmt.Errorf("apiclient: the token of %s cannot be sent in a header, because it has a line break or another control character", u.name)
	}
	h.Set("Authorization", "Bearer "+token)
	u.sent.AddToken(used.Token)
	return used, nil
}

// Refused reports an answer of 401 to the source. used is the value that Apply returned. The result is true if the
// source now has other credentials, so that the request can be repeated. It blocks while the source finds them.
func (u *User) Refused(ctx context.Context, used Credentials) (changed bool) {
	u.source.Refused(used)
	newest, err := u.source.Credentials(ctx)
	return err == nil && !(newest.Token.Reveal() == used.Token.Reveal() && SameCertificate(newest.Certificate, used.Certificate))
}

// Certificate returns the client certificate for a first connection; nil if only a caller's source, which may block,
// knows it.
func (u *User) Certificate() *tls.Certificate {
	if u.own == nil {
		return nil
	}
	newest, _ := u.own.Credentials(context.Background()) // it neither blocks nor fails
	return newest.Certificate
}

// Stale returns why the credentials in use are older than their files; nil if they are not.
func (u *User) Stale() error {
	if u.own == nil {
		return nil
	}
	return u.own.stale()
}

// ReportRefused reports to the source that the server refused the certificate in the handshake.
func (u *User) ReportRefused(used Credentials) { u.source.Refused(used) }
