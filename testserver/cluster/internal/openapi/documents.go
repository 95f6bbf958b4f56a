package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// Documents are the OpenAPI documents of one server.
type Documents struct {
	resources func() []*registry.Definition

	mu    sync.Mutex // guards the fields below
	known []*registry.Definition
	state *state
}

// New returns the documents of the resources that the function returns.
func New(resources func() []*registry.Definition) *Documents { return &Documents{resources: resources} }

// Fork returns the documents of a fork of the server. Both share what is the same.
func (d *Documents) Fork(resources func() []*registry.Definition) *Documents {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Documents{resources: resources, known: d.known, state: d.state}
}

// state are the documents of one set of resources.
type state struct {
	since  time.Time // for Last-Modified
	custom []*registry.Definition
	builtins
	customs map[schema.GroupVersion]func() (*content, error)
	index   func() (*content, error)
	whole   func() (*content, error) // version 2
}

// Serve answers a request for a document. It returns false for other paths.
func (d *Documents) Serve(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	name, versioned := strings.CutPrefix(path, "/openapi/v3/")
	if path != "/openapi/v2" && path != "/openapi/v3" && !versioned {
		return false
	}
	s, err := d.current()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return true
	}
	switch {
	case versioned:
		s.serveV3(w, r, name)
	case path == "/openapi/v3":
		s.serveIndex(w, r)
	default:
		s.serveV2(w, r)
	}
	return true
}

// current returns the documents of the present resources.
func (d *Documents) current() (*state, error) {
	all := d.resources()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != nil && slices.Equal(all, d.known) {
		return d.state, nil
	}
	next, err := newState(all, d.state)
	if err != nil {
		return nil, err
	}
	d.known, d.state = slices.Clone(all), next
	return next, nil
}

// newState prepares documents. It builds none, and takes those of custom resources that did not change from before.
func newState(all []*registry.Definition, before *state) (*state, error) {
	s := &state{since: time.Now(), customs: map[schema.GroupVersion]func() (*content, error){}}
	var builtin []*registry.Definition
	for _, d := range all {
		switch {
		case d.Custom:
			s.custom = append(s.custom, d)
		case d.Compute == nil: // another server of a real cluster has its documents
			builtin = append(builtin, d)
		}
	}
	var err error
	if s.builtins, err = builtinsOf(builtin); err != nil {
		return nil, err
	}
	for _, d := range s.custom {
		for _, served := range append([]string{d.Version}, d.Versions...) {
			gv := schema.GroupVersion{Group: d.Group, Version: served}
			s.customs[gv] = sync.OnceValues(func() (*content, error) { return customV3(s.custom, gv) })
			if before != nil && before.customs[gv] != nil && slices.Equal(in(before.custom, gv), in(s.custom, gv)) {
				s.customs[gv] = before.customs[gv]
			}
		}
	}
	s.index, s.whole = sync.OnceValues(s.buildIndex), sync.OnceValues(s.buildV2)
	return s, nil
}

// in returns the resources of a group and version.
func in(all []*registry.Definition, gv schema.GroupVersion) []*registry.Definition {
	return slices.DeleteFunc(slices.Clone(all), func(d *registry.Definition) bool {
		return d.Group != gv.Group || !d.Serves(gv.Version)
	})
}

// buildIndex returns the document that names all documents of version 3, with their hashes.
func (s *state) buildIndex() (*content, error) {
	builtin, err := s.v3()
	if err != nil {
		return nil, err
	}
	out := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for path, c := range builtin {
		out.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: urlOf(path, c)}
	}
	for gv, build := range s.customs {
		c, err := build()
		if err != nil {
			return nil, err
		}
		out.Paths[pathOfVersion(gv)] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: urlOf(pathOfVersion(gv), c)}
	}
	return newContent(out, nil)
}

func urlOf(path string, c *content) string {
	u := url.URL{Path: "/openapi/v3/" + path, RawQuery: url.Values{"hash": {c.hash}}.Encode()}
	return u.String()
}

// buildV2 returns the document of version 2, which has all resources.
func (s *state) buildV2() (*content, error) {
	whole, err := s.v2()
	if err != nil {
		return nil, err
	}
	custom, err := customV2(s.custom)
	if err != nil {
		return nil, err
	}
	if len(custom) > 0 {
		if whole, err = builder.MergeSpecs(whole, custom...); err != nil {
			return nil, fmt.Errorf("testserver: merge OpenAPI v2: %w", err)
		}
	}
	return newContent(whole, protobufV2)
}

// find returns a document of version 3, or nil.
func (s *state) find(name string) (*content, error) {
	builtin, err := s.v3()
	if err != nil {
		return nil, err
	}
	if c := builtin[name]; c != nil {
		return c, nil
	}
	for gv, build := range s.customs {
		if pathOfVersion(gv) == name {
			return build()
		}
	}
	return nil, nil
}

const (
	typeJSON       = "application/json"
	typeProtobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	typeProtobufV3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// accepted returns the type of an answer, or "" if the client accepts none. protobuf also has an older name, with "@".
func accepted(r *http.Request, protobuf string) string {
	header := r.Header.Get("Accept")
	if header == "" {
		return typeJSON
	}
	old := strings.Replace(protobuf, ".v1.0", "@v1.0", 1)
	for _, clause := range goautoneg.ParseAccept(header) {
		for _, have := range []string{typeJSON, protobuf, old} {
			major, minor, _ := strings.Cut(have, "/")
			if (clause.Type == major || clause.Type == "*") && (clause.SubType == minor || clause.SubType == "*") {
				return strings.Replace(have, "@v1.0", ".v1.0", 1)
			}
		}
	}
	return ""
}

func (s *state) serveIndex(w http.ResponseWriter, r *http.Request) {
	c, err := s.index()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.serve(w, r, c, c.json, "text/plain; charset=utf-8") // kube-apiserver does not say that it is JSON
}

func (s *state) serveV2(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept-Encoding") // kube-apiserver compresses this document if the client wants it
	w.Header().Add("Vary", "Accept")
	mediaType := accepted(r, typeProtobufV2)
	if mediaType == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	c, err := s.whole()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.serveAs(w, r, c, mediaType)
}

// serveV3 answers with a document. Clients may cache the answer to a request with its hash forever. A request with an
// older hash is redirected.
func (s *state) serveV3(w http.ResponseWriter, r *http.Request, name string) {
	c, err := s.find(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if c == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Vary", "Accept")
	mediaType := accepted(r, typeProtobufV3)
	if mediaType == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != c.hash {
			http.Redirect(w, r, wire.Prefix(r)+urlOf(name, c), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC1123))
	}
	s.serveAs(w, r, c, mediaType)
}

func (s *state) serveAs(w http.ResponseWriter, r *http.Request, c *content, mediaType string) {
	body := c.json
	if mediaType != typeJSON {
		var err error
		if body, err = c.protobuf(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	s.serve(w, r, c, body, mediaType)
}

// serve writes a body, or 304 to a client that has it.
func (s *state) serve(w http.ResponseWriter, r *http.Request, c *content, body []byte, mediaType string) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Etag", strconv.Quote(c.hash))
	http.ServeContent(w, r, "", s.since, bytes.NewReader(body))
}
