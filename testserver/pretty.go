package testserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leatproject/leat/testserver/internal/wire"
)

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
		return &indenter{ResponseWriter: w, from: http.StatusOK}, r
	}
	if accept := r.Header.Get("Accept"); accept != "" && !acceptsJSON(accept) {
		if _, err := anyType.Negotiate(accept); err != nil {
			return &indenter{ResponseWriter: w, from: http.StatusBadRequest}, r
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

// indenter indents JSON as json.MarshalIndent does. It keeps no more than what one Write passes, because a fault may
// make a list endless.
type indenter struct {
	http.ResponseWriter
	from            int // the lowest status of answers that are indented
	begun, json     bool
	depth           int
	quoted, escaped bool // inside of a string, and after a backslash there
	opened          bool // after a bracket; if it is closed at once, no line breaks
	out             []byte
}

// WriteHeader implements http.ResponseWriter.
func (i *indenter) WriteHeader(code int) {
	i.begin(code)
	i.ResponseWriter.WriteHeader(code)
}

func (i *indenter) begin(code int) {
	if !i.begun {
		i.begun, i.json = true, code >= i.from && strings.HasPrefix(i.Header().Get("Content-Type"), wire.JSON)
	}
}

// Unwrap serves http.ResponseController.
func (i *indenter) Unwrap() http.ResponseWriter { return i.ResponseWriter }

// Write implements http.ResponseWriter.
func (i *indenter) Write(b []byte) (int, error) {
	if i.begin(http.StatusOK); !i.json {
		return i.ResponseWriter.Write(b)
	}
	i.out = i.out[:0]
	for _, c := range b {
		i.add(c)
	}
	if _, err := i.ResponseWriter.Write(i.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (i *indenter) add(c byte) {
	switch {
	case i.quoted:
		i.out = append(i.out, c)
		i.quoted = c != '"' || i.escaped
		i.escaped = c == '\\' && !i.escaped
		return
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return
	}
	closes := c == '}' || c == ']'
	switch {
	case i.opened && !closes:
		i.depth++
		i.breakLine()
	case closes && !i.opened:
		i.depth--
		i.breakLine()
	}
	i.opened = c == '{' || c == '['
	i.quoted = c == '"'
	i.out = append(i.out, c)
	switch c {
	case ',':
		i.breakLine()
	case ':':
		i.out = append(i.out, ' ')
	}
}

func (i *indenter) breakLine() {
	i.out = append(i.out, '\n')
	for range i.depth {
		i.out = append(i.out, "  "...)
	}
}
