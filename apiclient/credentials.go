package apiclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// credentials add credentials to requests. They are headers of each request and not part of the transport, so that
// net/http's rules for redirects apply to them, and a WebSocket handshake can have the same. Credentials that change
// come from a CredentialSource: the Config's own or the user's.
type credentials struct {
	header http.Header // never changes
	source CredentialSource
	own    *configured // the source if it is the Config's own; otherwise nil
	sent   *sentSecrets
	last   atomic.Pointer[tls.Certificate] // of the last request
}

func newCredentials(c Config) (*credentials, error) {
	cr := &credentials{header: http.Header{}, source: c.Credentials, sent: &sentSecrets{}}
	if c.Username != "" {
		cr.header.Set("Authorization", "Basic "+basicAuth(c.Username, c.Password.Reveal()))
		cr.sent.addPassword(c.Username, c.Password.Reveal())
	}
	c.Impersonate.addTo(cr.header)
	if c.Credentials != nil {
		return cr, nil
	}
	own, err := newConfigured(c)
	if err != nil {
		return nil, err
	}
	cr.source, cr.own = own, own
	if !own.newest.Token.IsZero() {
		cr.sent.addToken(own.newest.Token)
	}
	return cr, nil
}

func (i Impersonate) addTo(h http.Header) {
	if i.UserName != "" {
		h.Set("Impersonate-User", i.UserName)
	}
	if i.UID != "" {
		h.Set("Impersonate-Uid", i.UID)
	}
	for _, g := range i.Groups {
		h.Add("Impersonate-Group", g)
	}
	for key, values := range i.Extra {
		name := "Impersonate-Extra-" + escapeHeaderName(strings.ToLower(key))
		for _, v := range values {
			h.Add(name, v)
		}
	}
}

// escapeHeaderName percent-encodes the bytes that a header's name cannot have. The server decodes them.
func escapeHeaderName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// apply adds the newest credentials to a request's header and returns them. The transport needs the certificate, and
// refused needs all of them.
func (cr *credentials) apply(ctx context.Context, h http.Header) (used Credentials, err error) {
	for name, values := range cr.header {
		h[name] = slices.Clone(values)
	}
	if used, err = cr.source.Credentials(ctx); err != nil {
		return used, err
	}
	if c := used.Certificate; c != nil && (len(c.Certificate) == 0 || c.PrivateKey == nil) {
		return used, fmt.Errorf("apiclient: the client certificate of %T lacks its certificate or its key", cr.source)
	}
	cr.last.Store(used.Certificate)
	if used.Token.IsZero() {
		return used, nil
	}
	token := used.Token.Reveal()
	if !validHeader(token) {
		return used, fmt.Errorf("apiclient: the token of %T cannot be sent in a header, because it has a line break or another control character", cr.source)
	}
	h.Set("Authorization", "Bearer "+token)
	cr.sent.addToken(used.Token)
	return used, nil
}

// refused reports an answer of 401 to the source. used is the value that apply returned. The result is true if the
// source now has other credentials, so that the request can be repeated. It blocks while the source finds them.
func (cr *credentials) refused(ctx context.Context, used Credentials) (changed bool) {
	cr.source.Refused(used)
	newest, err := cr.source.Credentials(ctx)
	return err == nil && !(newest.Token.Reveal() == used.Token.Reveal() && sameCertificate(newest.Certificate, used.Certificate))
}

// certificate returns the client certificate for a new connection. For a user's source, which may block, it returns the
// last one.
func (cr *credentials) certificate() *tls.Certificate {
	if cr.own == nil {
		return cr.last.Load()
	}
	newest, _ := cr.own.Credentials(context.Background()) // it neither blocks nor fails
	return newest.Certificate
}

// stale returns why the credentials in use are older than the files of the Config; nil if they are not.
func (cr *credentials) stale() error {
	if cr.own == nil {
		return nil
	}
	return cr.own.stale()
}
