package manager

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// debuggable returns the controllers with a debug handler, sorted by name.
func (m *Manager) debuggable() []Debuggable {
	var all []Debuggable
	for _, r := range m.membersWhere(func(*RunnableRegistration) bool { return true }) {
		if d, ok := r.runnable.(Debuggable); ok {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Debuggable) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// serveControllers serves the state of one controller, or the names of all.
func (m *Manager) serveControllers(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/debug/controllers/")
	names := []string{}
	for _, d := range m.debuggable() {
		if name == d.Name() || strings.HasPrefix(name, d.Name()+"/") {
			d.DebugHandler().ServeHTTP(w, r)
			return
		}
		names = append(names, d.Name())
	}
	if name != "" {
		http.NotFound(w, r)
		return
	}
	writeJSON(w, names)
}

// serveWhy serves the answers of all controllers that know a key.
func (m *Manager) serveWhy(w http.ResponseWriter, r *http.Request) {
	var known []json.RawMessage
	for _, d := range m.debuggable() {
		said := &capture{header: http.Header{}, code: http.StatusOK}
		d.DebugHandler().ServeHTTP(said, r)
		if said.code == http.StatusOK && json.Valid(said.body.Bytes()) {
			known = append(known, said.body.Bytes())
		}
	}
	if len(known) == 0 {
		http.Error(w, "manager: no controller knows this key", http.StatusNotFound)
		return
	}
	writeJSON(w, known)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // it fails only if the client is gone
}

// capture is a ResponseWriter that stores an answer.
type capture struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header, WriteHeader and Write implement http.ResponseWriter.
func (c *capture) Header() http.Header { return c.header }

func (c *capture) WriteHeader(code int) { c.code = code }

func (c *capture) Write(p []byte) (int, error) { return c.body.Write(p) }
