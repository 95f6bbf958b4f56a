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

// credentials put into a request who asks. They stand on each request and not in the transport, so that net/http's own
// rules for redirects see them, and so that a WebSocket handshake can carry the same. All that can change comes from a
// CredentialSource, the Config's own or the user's.
type credentials struct {
	header http.Header // what never changes
	source CredentialSource
	own    *configured // source where it is the Config's own, else nil
	sent   *sentSecrets
	last   atomic.Pointer[tls.Certificate] // that a request was sent with
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

// escapeHeaderName percent-encodes what may not stand in a header's name; the server decodes it.
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

// apply adds the newest credentials to a request's header and returns what it used: the certificate is for the
// transport, and all of it for refused.
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
		return used, fmt.Errorf("apiclient: the token of %T cannot stand in a header: it holds a line break or another control character", cr.source)
	}
	h.Set("Authorization", "Bearer "+token)
	cr.sent.addToken(used.Token)
	return used, nil
}

// refused is told of an answer of 401 to a request with what apply returned, and tells whether there are other
// credentials now, so that trying again makes sense. It blocks while the source finds out.
func (cr *credentials) refused(ctx context.Context, used Credentials) (changed bool) {
	cr.source.Refused(used)
	newest, err := cr.source.Credentials(ctx)
	return err == nil && !(newest.Token.Reveal() == used.Token.Reveal() && sameCertificate(newest.Certificate, used.Certificate))
}

// certificate is the client's for a connection that is about to be opened; of a user's source, which may block, that
// which it gave last.
func (cr *credentials) certificate() *tls.Certificate {
	if cr.own == nil {
		return cr.last.Load()
	}
	newest, _ := cr.own.Credentials(context.Background()) // it neither blocks nor fails
	return newest.Certificate
}

// stale says why the files that the Config names are not what is used; nil if they are.
func (cr *credentials) stale() error {
	if cr.own == nil {
		return nil
	}
	return cr.own.stale()
}
