package manager

import (
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// AdminOptions say where the admin server listens, and what it answers beside health checks.
type AdminOptions struct {
	// Address is what to listen on, such as ":8081"; "" and "0" are off. Listener is used instead, if there is one.
	Address  string
	Listener net.Listener

	// Metrics answers at /metrics, if not nil.
	Metrics http.Handler
	// Profile answers at /debug/pprof/, if not nil; nothing is linked unless it is given. net/http/pprof registers
	// its handlers with http.DefaultServeMux, which is what to give then.
	Profile http.Handler
	// Debug serves /debug/controllers/ and /debug/why/ for every Debuggable, and /debug/options with the effective
	// options of the manager and of every OptionsReporter. The answers contain keys and the texts of errors, so
	// everybody who can reach the server can read what the controllers can read.
	Debug bool
	// AllowedHosts are further hosts by which browsers, and programs that use a listener on loopback, may ask. The
	// admin server is one with ServerOptions.SameOrigin: a web page gets nothing from it.
	AllowedHosts []string
	// ShutdownTimeout is that of ServerOptions.
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

// AdminHandler answers what the admin server does: /healthz, /livez and /readyz, and what the options ask for. It is
// for those who have a server already, or want two: of o it looks at Metrics, Profile and Debug alone. It answers web
// pages of other origins; a Server with SameOrigin in front of it does not.
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
		mux.HandleFunc("GET /debug/options", m.serveOptions)
	}
	return mux
}
