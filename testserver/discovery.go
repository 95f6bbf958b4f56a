package testserver

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// gitVersion is the version of kube-apiserver that this package imitates.
const gitVersion = "v1.37.2"

// public reports whether a path needs no authentication, as health checks and the version in kube-apiserver.
func public(path string) bool {
	root := splitPath(path)[0]
	return root == "version" || slices.Contains(healthPaths, root)
}

// document answers requests that are not about a resource: health, version and discovery.
func (s *Server) document(w http.ResponseWriter, req *http.Request, r Request) {
	switch parts := splitPath(r.Path); {
	case len(parts) == 1 && slices.Contains(healthPaths, parts[0]), len(parts) == 2 && slices.Contains(healthPaths, parts[0]) && parts[1] == "ping":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(parts) == 1 {
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		_, _ = w.Write([]byte("ok")) // an error means that the client has gone
	case len(parts) == 1 && parts[0] == "version":
		serveVersion(w, req)
	case parts[0] == "api" || parts[0] == "apis":
		s.serveDiscovery(w, req, r, parts)
	default:
		s.notFound(w, r)
	}
}

var healthPaths = []string{"healthz", "livez", "readyz"}

// serveVersion answers with the version, which is always JSON.
func serveVersion(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		fail(w, wire.NotAllowed())
		return
	}
	if err := documents(wire.JSON).CheckRoute(r.Header.Get("Accept")); err != nil {
		fail(w, err)
		return
	}
	body, _ := json.MarshalIndent(versionDocument(), "", "  ") // only strings; kube-apiserver always indents it
	wire.WriteJSON(w, http.StatusOK, body)
}

// serveDiscovery answers with a document of discovery.
func (s *Server) serveDiscovery(w http.ResponseWriter, req *http.Request, r Request, parts []string) {
	doc := s.discovery(parts, req.Host)
	if doc == nil {
		s.notFound(w, r)
		return
	}
	groups := parts[0] == "apis" && len(parts) <= 2 // kube-apiserver answers every method there, and has no route
	if r.Method != http.MethodGet && !groups {
		fail(w, wire.NotAllowed())
		return
	}
	accept := req.Header.Get("Accept")
	if len(parts) == 1 && !s.options.NoAggregatedDiscovery {
		if mediaType := wire.AggregatedType(accept); mediaType != "" {
			s.serveAggregated(w, req, parts[0], mediaType)
			return
		}
	}
	o := documents(wire.JSON, wire.YAML, wire.Protobuf)
	o.Route = !groups && (parts[0] == "api" || s.hasBuiltins(parts[1]))
	m, err := o.Negotiate(accept)
	if err != nil {
		status := wire.StatusOf(err)
		wire.WriteStatusAs(w, m.Errors, int(status.Code), status)
		return
	}
	body, err := wire.EncodeDocument(m.Type, doc)
	if err != nil {
		fail(w, err)
		return
	}
	wire.Write(w, m.Type, http.StatusOK, body)
}

// documents returns what documents of some types can be answered with.
func documents(types ...string) wire.Offer { return wire.Offer{Types: types, Route: true, Plain: true} }

// remoteGroups returns the groups that other servers serve.
func (s *Server) remoteGroups() []registry.RemoteGroup {
	if s.extension.Groups == nil {
		return nil
	}
	return s.extension.Groups()
}

// hasBuiltins reports whether a group has resources that are not custom.
func (s *Server) hasBuiltins(group string) bool {
	return slices.ContainsFunc(s.store.Definitions(), func(d *registry.Definition) bool { return !d.Custom && d.Group == group })
}

// versionDocument returns the version of a kube-apiserver that go build has built from the module k8s.io/kubernetes. It
// has placeholders instead of a commit and a date.
func versionDocument() version.Info {
	major, rest, _ := strings.Cut(strings.TrimPrefix(gitVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return version.Info{
		Major: major, Minor: minor, GitVersion: gitVersion, EmulationMajor: major, EmulationMinor: minor,
		MinCompatibilityMajor: major, MinCompatibilityMinor: previous(minor), GoVersion: runtime.Version(),
		GitCommit: "$Format:%H$", BuildDate: "1970-01-01T00:00:00Z",
		Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// previous returns the minor version before another one.
func previous(minor string) string {
	n, _ := strconv.Atoi(minor) // of a constant
	return strconv.Itoa(n - 1)
}

// discovery returns the document of a path, or nil if it is not served. host is the address of the server.
func (s *Server) discovery(parts []string, host string) wire.Document {
	all := s.store.Definitions()
	group, served := "", ""
	switch {
	case len(parts) == 1 && parts[0] == "api":
		return &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: host}},
		}
	case len(parts) == 1:
		list := registry.GroupList(all, s.remoteGroups())
		return &list
	case len(parts) == 2 && parts[0] == "api":
		served = parts[1]
	case len(parts) == 2:
		if group, ok := registry.Group(all, s.remoteGroups(), parts[1]); ok {
			return &group
		}
		return nil
	case len(parts) == 3 && parts[0] == "apis":
		group, served = parts[1], parts[2]
	default:
		return nil
	}
	if list, ok := registry.ResourceList(all, group, served); ok {
		if group == "" {
			list.APIVersion = "" // kube-apiserver leaves it out
		}
		return &list
	}
	return nil
}

// aggregatedForm are the parameters of the media type of aggregated discovery. Kubernetes 1.35 removed v2beta1.
const aggregatedForm = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveAggregated answers /api or /apis with the whole document, or with 304 if the client already has it.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, root, mediaType string) {
	body, err := json.Marshal(registry.AggregatedList(s.store.Definitions(), s.remoteGroups(), root))
	if err != nil {
		fail(w, fmt.Errorf("testserver: encode a discovery document: %w", err))
		return
	}
	tag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))
	w.Header().Set("ETag", tag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if body, err = wire.FromJSON(mediaType, append(body, '\n')); err != nil {
		fail(w, fmt.Errorf("testserver: encode a discovery document: %w", err))
		return
	}
	wire.Write(w, mediaType+aggregatedForm, http.StatusOK, body)
}
