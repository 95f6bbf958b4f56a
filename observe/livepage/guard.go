package livepage

import (
	"embed"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxBody limits the body of a request, in bytes.
const maxBody = 64 << 10

// policy forbids everything that is not a file of the page itself: scripts and styles in the document, requests to
// other origins, frames, forms and plugins.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// anywhere is the address that the guard gets. The server may have a guard of its own with its real address; behind a
// port-forward, the port that the client names is not the port of the listener.
var anywhere = &net.TCPAddr{IP: net.IPv6unspecified}

// guarded returns a handler behind the page's checks.
func (p *Page) guarded(next http.Handler) http.Handler {
	return p.guard.Handler(anywhere, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.o.OtherMachines && !fromLoopback(r) {
			http.Error(w, "livepage: the page answers only this machine; see Options.OtherMachines", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	}))
}

func fromLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// assets are the files of the page. uPlot draws the charts; its licence is beside it.
//
//go:embed assets
var assets embed.FS

// contentTypes are fixed, because the types that package mime knows depend on the machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", "LICENSE": "text/plain; charset=utf-8",
}

// serveAssets adds a path for each file, "/" for the document, and /page.js for the script that fills it.
func serveAssets(mux *http.ServeMux, script string) {
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	for _, f := range files {
		name := f.Name()
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		path := "/" + name
		switch name {
		case "index.html":
			path = "/{$}"
		case script:
			path = "/page.js"
		}
		kind := contentTypes[name[strings.LastIndexByte(name, '.'):]]
		if kind == "" {
			kind = contentTypes["LICENSE"]
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content) // it fails only if the client is gone
		})
	}
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // it fails only if the client is gone
}
