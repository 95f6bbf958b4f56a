package secret

import (
	"errors"
	"net/url"
	"strings"
)

// HideUser removes user and password from a URL. It hides a URL that cannot be parsed if it may have either.
func HideUser(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return Redacted
	}
	u.User = url.User(Redacted)
	return u.String()
}

// WithoutURL removes the URL that net/url and net/http add to an error. The operation is already named, and a URL may
// have a secret.
func WithoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
