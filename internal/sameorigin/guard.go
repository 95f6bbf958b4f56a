package sameorigin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Guard refuses what web pages of other origins ask for.
type Guard struct {
	allowed []host
}

// host is a value of Host, in lower case.
type host struct {
	name string // a name, or an address without brackets
	port string // may be empty
}

// New returns a guard. Each of allowed is a further host that a server may be asked for by: "name" with any port, or
// "name:port".
func New(allowed []string) (*Guard, error) {
	g := &Guard{}
	for _, text := range allowed {
		h, ok := parseHost(text)
		if !ok {
			return nil, fmt.Errorf("sameorigin: allowed host %q is neither a host nor a host:port", text)
		}
		g.allowed = append(g.allowed, h)
	}
	return g, nil
}

// Handler returns next behind the guard, for a listener at address.
func (g *Guard) Handler(address net.Addr, next http.Handler) http.Handler {
	guarded := guarded{Guard: g}
	if tcp, ok := address.(*net.TCPAddr); ok {
		guarded.loopback, guarded.port = tcp.IP.IsLoopback(), strconv.Itoa(tcp.Port)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code, err := guarded.check(r); err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		// A page may embed an answer that it may not read. Such a request has no Origin, and perhaps no
		// Sec-Fetch-Site.
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// guarded is a guard of one listener.
type guarded struct {
	*Guard
	loopback bool
	port     string // of a TCP listener
}

// A page may read the first text, so the texts contain nothing about the server.
var (
	errHost   = errors.New("sameorigin: Host is not a name of this server; allow it if it should be")
	errOrigin = errors.New("sameorigin: the request is of a web page of another origin")
	errForm   = errors.New("sameorigin: a body from a browser needs a Content-Type that forms cannot send")
)

func (g guarded) check(r *http.Request) (code int, err error) {
	switch {
	case !g.answersTo(r):
		return http.StatusForbidden, errHost
	case !g.sameOrigin(r):
		return http.StatusForbidden, errOrigin
	case isFromBrowser(r) && mayBeForm(r):
		return http.StatusUnsupportedMediaType, errForm
	}
	return 0, nil
}

// answersTo reports whether Host is one of the server's. Browsers always send it.
func (g guarded) answersTo(r *http.Request) bool {
	if r.Host == "" {
		return true
	}
	h, ok := parseHost(r.Host)
	switch {
	case !ok:
		return false
	case g.allows(h):
		return true
	case g.loopback:
		return h.isLoopback() && g.hasPort(h, r)
	default:
		return h.isAddress() || h.name == "localhost" || !isFromBrowser(r)
	}
}

// allows reports whether a host is one of those that New got.
func (g *Guard) allows(h host) bool {
	for _, a := range g.allowed {
		if a.name == h.name && (a.port == "" || a.port == h.port) {
			return true
		}
	}
	return false
}

// hasPort reports whether a host has the port of the listener. The default port of the scheme may be left out.
func (g guarded) hasPort(h host, r *http.Request) bool {
	if h.port != "" {
		return h.port == g.port
	}
	return r.TLS == nil && g.port == "80" || r.TLS != nil && g.port == "443"
}

// sameOrigin reports whether a request has no sign of a page of another origin. Programs send Origin too, because
// kube-apiserver requires it in the handshake of a WebSocket. They send the URL of the server.
func (g guarded) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // "none" means that a person has typed the address
	default:
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil {
			return false
		}
		h, ok := parseHost(u.Host)
		if !ok || !strings.EqualFold(u.Host, r.Host) && !g.allows(h) {
			return false
		}
	}
	return true
}

// isFromBrowser reports whether a request has a sign of a browser that a script cannot remove.
func isFromBrowser(r *http.Request) bool {
	for _, name := range []string{"Accept-Language", "Sec-Fetch-Site", "Sec-Fetch-Mode"} {
		if _, there := r.Header[name]; there {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// mayBeForm reports whether a request has a body that a page may send to another origin without a preflight: one of
// three types, or without a type.
func mayBeForm(r *http.Request) bool {
	if r.ContentLength == 0 {
		return false
	}
	essence, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(essence)) {
	case "", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded":
		return true
	}
	return false
}

// parseHost reads what may stand in Host, or in a list of allowed hosts.
func parseHost(text string) (host, bool) {
	u, err := url.Parse("//" + text)
	if err != nil || u.Host != text || u.Hostname() == "" {
		return host{}, false
	}
	return host{name: strings.ToLower(u.Hostname()), port: u.Port()}, true
}

func (h host) isAddress() bool {
	_, err := netip.ParseAddr(h.name)
	return err == nil
}

func (h host) isLoopback() bool {
	a, err := netip.ParseAddr(h.name)
	return h.name == "localhost" || err == nil && a.Unmap().IsLoopback()
}
