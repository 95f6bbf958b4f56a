package auth

import (
	"fmt"
	"strings"
)

// Validate checks that the options fit together and can be sent. It reads no file. The error is a *FieldError.
func (o Options) Validate() error {
	bearer := !o.Token.IsZero() || o.TokenFile != ""
	basic := o.Username != "" || !o.Password.IsZero()
	hasCert, hasKey := len(o.CertData) > 0 || o.CertFile != "", !o.KeyData.IsZero() || o.KeyFile != ""
	switch {
	case o.Source != nil && (bearer || basic):
		return fieldErrorf("Credentials", "they conflict with BearerToken, BearerTokenFile, Username and Password")
	case o.Source != nil && (hasCert || hasKey):
		return fieldErrorf("Credentials", "they conflict with the client certificate of TLS")
	case bearer && basic:
		return fieldErrorf("Username", "it conflicts with a bearer token")
	case o.Username == "" && basic:
		return fieldErrorf("Username", "it is empty, but there is a password")
	case strings.Contains(o.Username, ":"):
		return fieldErrorf("Username", "it has a colon, which basic authentication does not allow")
	case !ValidHeader(o.Token.Reveal()):
		return fieldErrorf("BearerToken", "it cannot be sent in a header, because it has a line break or another control character")
	case hasCert && !hasKey:
		return fieldErrorf("TLS.KeyData", "a client certificate needs a key")
	case hasKey && !hasCert:
		return fieldErrorf("TLS.CertData", "a client key needs a certificate")
	}
	return o.Impersonation.validate()
}

func (i Impersonation) validate() error {
	if i.UserName == "" && (i.UID != "" || len(i.Groups) > 0 || len(i.Extra) > 0) {
		return fieldErrorf("Impersonate.UserName", "it is empty, but other fields of Impersonate are set")
	}
	if !ValidHeader(i.UserName) || !ValidHeader(i.UID) {
		return fieldErrorf("Impersonate", "the name or the UID has a control character")
	}
	for _, g := range i.Groups {
		if !ValidHeader(g) {
			return fieldErrorf("Impersonate.Groups", "%q has a control character", g)
		}
	}
	for key, values := range i.Extra {
		if key == "" {
			return fieldErrorf("Impersonate.Extra", "it has an empty key")
		}
		for _, v := range values {
			if !ValidHeader(v) {
				return fieldErrorf("Impersonate.Extra", "the value of %q has a control character", key)
			}
		}
	}
	return nil
}

func fieldErrorf(field, format string, a ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, a...)}
}

// ValidHeader reports whether a header can have this value. It is stricter than net/http, whose error comes too late.
func ValidHeader(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
