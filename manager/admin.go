package manager

import (
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// AdminOptions configure the admin server: its address, and what it serves besides health checks.
type AdminOptions struct {
	// Address is the TCP address to listen on, such as ":8081". With "" or "0" there is no admin server.
	Address string
	// Listener, if not nil, replaces Address.
	Listener net.Listener

	// Metrics serves /metrics. Nil means that there is no such path.
	Metrics http.Handler
	// Profile serves /debug/pprof/. Nil means that there is no such path. Package net/http/pprof registers its handlers
	// with http.DefaultServeMux: import it and set Profile to that. leat does not link it.
	Profile http.Handler
	// Debug serves /debug/controllers/ and /debug/why/ for every Debuggable, /debug/informers with the Status of every
	// informer and of its scopes, and /debug/options with the effective options of the manager and of every
	// OptionsReporter. The answers contain keys and the texts of errors, so everybody who can reach the server can read
	// what the controllers can read.
	Debug bool
	// Page serves /page/, a web page with the state of all runnables, and shows what Debug allows. Nil means that there
	// is no such path. Package livepage has one; leat does not link it.
	Page StatePage
	// AllowedHosts are more names under which the admin server may be reached; see ServerOptions.AllowedHosts. The
	// admin server always has ServerOptions.SameOrigin, so a web page of another origin gets nothing from it.
	AllowedHosts []string
	// ShutdownTimeout has the meaning of ServerOptions.ShutdownTimeout.
	ShutdownTimeout time.Duration
}

func (o AdminOptions) off() bool { return o.Listener == nil && (o.Address == "" || o.Address == "0") }

func (o AdminOptions) server(h http.Handler, log *zap.Logger) ServerOptions {
	if o.Listener != nil {
		o.Address = ""
	}
	return ServerOptions{
		Address: o.Address, Listener: o.Listener, Handler: h, SameOrigin: true, AllowedHosts: o.AllowedHosts,
		ShutdownTimeout: o.ShutdownTimeout, Logger: log,
	}
}

// AdminHandler returns the handler of the admin server: /healthz, /livez and /readyz, and the paths that o turns on.
// Use it in a server of your own, or for a second server. It uses only Metrics, Profile, Debug and Page of o. It
// does not reject web pages of other origins; a Server with SameOrigin does.
func (m *Manager) AdminHandler(o AdminOptions) http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]*Checks{"/healthz": m.healthz, "/livez": m.livez, "/readyz": m.readyz} {
		mux.Handle(path, checks)
		mux.Handle(path+"/", checks)
	}
	if o.Metrics != nil {
		mux.Handle("/metrics", o.Metrics)
	}
	if o.Profile != nil {
		mux.Handle("/debug/pprof/", o.Profile)
	}
	if o.Debug {
		mux.HandleFunc("GET /debug/controllers/", m.serveControllers)
		mux.HandleFunc("GET /debug/why/{key...}", m.serveWhy)
		mux.HandleFunc("GET /debug/informers", m.serveInformers)
		mux.HandleFunc("GET /debug/options", m.serveOptions)
	}
	if o.Page != nil {
		mux.Handle("/page/", http.StripPrefix("/page", o.Page.Handler(o.Debug)))
	}
	return mux
}
