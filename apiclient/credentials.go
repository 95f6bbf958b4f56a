package apiclient

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenLifetime is for how long a token that was read from a file is used before the file is read again.
const tokenLifetime = time.Minute

// credentials put into a request who asks. They stand on each request and not in the transport, so that net/http's own
// rules for redirects see them, and so that a WebSocket handshake can carry the same.
//
// Exec plugins and certificates that rotate belong here when they come: apply asks for what is newest, and refused
// hears of a 401.
type credentials struct {
	header   http.Header // what never changes
	password Secret      // only to keep it out of errors
	token    *tokenFile  // nil without one
	source   CredentialSource
}

func newCredentials(c Config) (*credentials, error) {
	cr := &credentials{header: http.Header{}, password: c.Password, source: c.Credentials}
	switch {
	case c.BearerTokenFile != "":
		cr.token = &tokenFile{path: c.BearerTokenFile, last: c.BearerToken.Reveal()}
		if _, err := cr.token.get(); err != nil {
			return nil, &FieldError{Field: "BearerTokenFile", Err: err}
		}
	case !c.BearerToken.IsZero():
		cr.header.Set("Authorization", "Bearer "+c.BearerToken.Reveal())
	case c.Username != "":
		userPassword := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password.Reveal()))
		cr.header.Set("Authorization", "Basic "+userPassword)
	}
	c.Impersonate.addTo(cr.header)
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

// apply adds the credentials to a request's header.
func (cr *credentials) apply(ctx context.Context, h http.Header) error {
	for name, values := range cr.header {
		h[name] = append([]string(nil), values...)
	}
	if cr.source != nil {
		newest, err := cr.source.Credentials(ctx)
		if err == nil && !newest.Token.IsZero() {
			h.Set("Authorization", "Bearer "+newest.Token.Reveal())
		}
		return err
	}
	if cr.token == nil {
		return nil
	}
	t, err := cr.token.get()
	if err != nil {
		return err
	}
	h.Set("Authorization", "Bearer "+t)
	return nil
}

// refused is told of an answer of 401: what is cached may be what was refused.
func (cr *credentials) refused() {
	if cr.token != nil {
		cr.token.expire()
	}
}

// tokenFile is a bearer token in a file that somebody replaces now and then.
type tokenFile struct {
	path string

	mu   sync.Mutex // guards the fields below
	last string
	read time.Time // of the last attempt; zero before the first
}

// get returns the token. It fails only while there never was one, for a token that is a little old is still better
// than none: tokens overlap when they rotate.
func (f *tokenFile) get() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != "" && !f.read.IsZero() && time.Since(f.read) < tokenLifetime {
		return f.last, nil
	}
	t, err := readToken(f.path)
	if err != nil && f.last == "" {
		return "", err
	}
	if err == nil {
		f.last = t
	}
	f.read = time.Now()
	return f.last, nil
}

// seen returns the token that was sent last.
func (f *tokenFile) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == "" {
		return nil
	}
	return []string{f.last}
}

func (f *tokenFile) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	t := strings.TrimSpace(string(data))
	switch {
	case t == "":
		return "", errors.New("the token file " + path + " is empty")
	case !validHeader(t):
		return "", errors.New("the token file " + path + " holds more than a token")
	}
	return t, nil
}
