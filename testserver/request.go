package testserver

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/testserver/internal/disturb"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// Request describes a request that the server received. It does not contain credentials.
type Request struct {
	Method    string
	Path      string
	Query     url.Values
	UserAgent string
	User      string // empty without authentication
	At        time.Time

	// Verb is "get", "list", "watch", "create", "update", "patch", "delete" or "deletecollection" for a resource. For
	// other requests it is the method in lower case.
	Verb string
	// Group, Version, Resource (the plural name), Subresource, Namespace and Name identify the object or collection.
	// They are empty for requests that are not about a resource.
	Group, Version, Resource, Subresource, Namespace, Name string
}

// target returns what faults see of the request.
func (r Request) target(from *http.Request) disturb.Target {
	return disturb.Target{
		HTTP: from, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name,
	}
}

// splitPath returns the segments of a path. The first one is empty if the path begins with two slashes, so
// kube-apiserver serves nothing there.
func splitPath(path string) []string {
	return strings.Split(strings.TrimRight(strings.TrimPrefix(path, "/"), "/"), "/")
}

// parseRequest interprets the path as kube-apiserver does.
func parseRequest(r *http.Request) Request {
	out := Request{
		Method:    r.Method,
		Path:      r.URL.Path,
		Query:     r.URL.Query(),
		UserAgent: r.UserAgent(),
		Verb:      strings.ToLower(r.Method),
		At:        time.Now(),
	}
	parts := splitPath(r.URL.Path)
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		out.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		out.Group, out.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return out
	}
	watching := false
	if parts[0] == "watch" && len(parts) > 1 {
		watching, parts = true, parts[1:] // the old form: /api/v1/watch/pods
	}
	out.parseTarget(parts)
	out.parseVerb(watching)
	return out
}

func (r *Request) parseTarget(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		// namespaces/x/pods is about pods; namespaces/x, namespaces/x/status and namespaces/x/finalize are about the
		// namespace.
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			r.Namespace, parts = parts[1], parts[2:]
		} else {
			r.Namespace = parts[1]
		}
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = strings.Join(parts[2:], "/")
		if parts[2] == proxySubresource {
			r.Subresource = proxySubresource // the rest is a path behind it
		}
	}
}

func (r *Request) parseVerb(watching bool) {
	if watching {
		r.Verb = "watch" // whatever the method is
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case r.Name != "":
			r.Verb = "get"
		case wire.BoolParam(r.Query, "watch"):
			r.Verb = "watch"
		default:
			r.Verb = "list"
		}
	case http.MethodPost:
		r.Verb = "create"
	case http.MethodPut:
		r.Verb = "update"
	case http.MethodDelete:
		if r.Name == "" {
			r.Verb = "deletecollection"
		}
	}
}

// requestLog keeps the last requests.
type requestLog struct {
	mu    sync.Mutex // guards the fields below
	limit int
	seen  []Request
}

func (l *requestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == 0 {
		return
	}
	if len(l.seen) == l.limit {
		l.seen = slices.Delete(l.seen, 0, max(l.limit/10, 1))
	}
	l.seen = append(l.seen, r)
}

// Requests returns the requests since the last ForgetRequests, oldest first. If there were more than
// Options.RequestLog, the oldest are missing.
func (s *Server) Requests() []Request {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.Clone(s.log.seen)
}

// ForgetRequests empties the log that Requests returns.
func (s *Server) ForgetRequests() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.seen = nil
}

// browsers are the beginnings of User-Agents that get indented JSON without a parameter, as from kube-apiserver.
var browsers = []string{"curl", "Wget", "Mozilla/5.0"}

// streams are the subresources whose answers are no objects.
var streams = []string{"log", "exec", "attach", "portforward", proxySubresource}

// indent returns a writer that indents JSON if the request wants that, and the request for it. kube-apiserver also
// indents errors if it cannot negotiate their media type, because it then writes them in another way.
func indent(w http.ResponseWriter, r *http.Request, request Request) (http.ResponseWriter, *http.Request) {
	if pretty(request, r) {
		r = r.WithContext(r.Context())
		r.Header = r.Header.Clone()
		r.Header.Del("Accept-Encoding") // compressed JSON cannot be indented
		return &wire.Indenter{ResponseWriter: w, From: http.StatusOK}, r
	}
	if accept := r.Header.Get("Accept"); accept != "" && !acceptsJSON(accept) {
		if _, err := anyType.Negotiate(accept); err != nil {
			return &wire.Indenter{ResponseWriter: w, From: http.StatusBadRequest}, r
		}
	}
	return w, r
}

// acceptsJSON reports whether a header obviously accepts JSON. It is a short way, without allocations, for what nearly
// all clients send.
func acceptsJSON(accept string) bool {
	for clause := range strings.SplitSeq(accept, ",") {
		if clause = strings.TrimSpace(clause); clause == wire.JSON || clause == "*/*" {
			return true
		}
	}
	return false
}

// anyType is what errors are negotiated with.
var anyType = wire.Offer{Types: []string{wire.JSON, wire.YAML, wire.Protobuf}, Plain: true}

// pretty reports whether JSON in the answer is indented. The Accept header decides, then the parameter, and then the
// program.
func pretty(request Request, r *http.Request) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(request.Path, "/"), "/")
	switch {
	case root == "":
		return true
	case request.Verb == "watch" || slices.Contains(streams, request.Subresource) || root != "api" && root != "apis":
		return false
	}
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "pretty") {
		for clause := range strings.SplitSeq(strings.ReplaceAll(accept, " ", ""), ",") {
			if strings.HasPrefix(clause, wire.JSON) && slices.Contains(strings.Split(clause, ";"), "pretty=1") {
				return true
			}
		}
	}
	if text := request.Query.Get("pretty"); text != "" {
		out, _ := strconv.ParseBool(text) // another text means no
		return out
	}
	return slices.ContainsFunc(browsers, func(b string) bool { return strings.HasPrefix(request.UserAgent, b) })
}
