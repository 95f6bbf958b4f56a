package call

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// ParseServer parses the URL of a server. Its errors quote only the part of the URL that cannot be a password.
func ParseServer(host string) (*url.URL, error) {
	if host == "" {
		return nil, errors.New("it is empty; it must be the URL of an API server")
	}
	u, err := url.Parse(host)
	shown := host
	if i := strings.IndexAny(host, "?#"); i >= 0 {
		shown = host[:i] // the rest may be a token
	}
	switch {
	case strings.Contains(host, "@"):
		return nil, errors.New("it has a user or password, which have their own fields")
	case !strings.Contains(host, "://"):
		return nil, fmt.Errorf("%q has no scheme: put https:// or http:// in front of it", shown)
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL: %w", shown, secret.WithoutURL(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q has the scheme %q; it must be https or http", shown, u.Scheme)
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host", shown)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query or a fragment", shown)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}
