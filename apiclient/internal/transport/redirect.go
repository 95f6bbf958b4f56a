package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/leatproject/leat/internal/quote"
)

// RedirectError is a redirect that was not followed. Another host or scheme must not get the credentials, and a write
// must not be repeated or become a read.
type RedirectError struct {
	From, To string // URLs without user, query and fragment
	Method   string
}

// Error names the method and both URLs.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("apiclient: %s %s was redirected to %s, which the client does not follow", e.Method, e.From, e.To)
}

// checkRedirect follows a redirect only if a read stays on the same server. A proxy that adds a slash to the path sends
// such a redirect.
func (ts *Transports) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if sameServer(next.URL, first.URL) && first.Method == http.MethodGet && len(via) < 10 {
		return nil
	}
	return &RedirectError{From: bareURL(first.URL), To: ts.sent.Clean(bareURL(next.URL)), Method: first.Method}
}

func sameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func bareURL(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return quote.Short(bare.String(), maxQuoted)
}
