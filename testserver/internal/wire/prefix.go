package wire

import (
	"net/http"
	"strings"
)

// Prefix returns what a handler has removed from the beginning of the path of a request, such as /clusters/a, or "".
// An absolute path in an answer needs it.
func Prefix(r *http.Request) string {
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	prefix, ok := strings.CutSuffix(sent, r.URL.EscapedPath())
	if !ok || !strings.HasPrefix(prefix, "/") { // nothing, or a host
		return ""
	}
	return prefix
}
