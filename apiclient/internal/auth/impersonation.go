package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// Impersonation names another user, as which the server should handle a request. The zero value changes nothing.
type Impersonation struct {
	UserName string
	UID      string
	Groups   []string
	Extra    map[string][]string
}

func (i Impersonation) addTo(h http.Header) {
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
