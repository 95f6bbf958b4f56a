package testserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/leatproject/leat/testserver/internal/pipe"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// gitVersion is the version of kube-apiserver that this package imitates.
const gitVersion = "v1.36.3"

// public reports whether a path needs no authentication, as health checks and the version in kube-apiserver.
func public(path string) bool {
	for _, open := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		if path == open || strings.HasPrefix(path, open+"/") {
			return true
		}
	}
	return false
}

// document answers requests that are not about a resource: health, version and discovery.
func (s *Server) document(w http.ResponseWriter, req *http.Request, r Request) {
	parts := splitPath(r.Path)
	var doc any
	switch parts[0] {
	case "healthz", "livez", "readyz":
		if len(parts) > 2 || len(parts) == 2 && parts[1] != "ping" {
			break
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(parts) == 1 {
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		_, _ = w.Write([]byte("ok")) // an error means that the client has gone
		return
	case "version":
		doc = versionDocument()
	case "api", "apis":
		doc = s.discovery(parts)
	}
	if doc == nil || len(parts) > 1 && parts[0] == "version" {
		s.notFound(w, r)
		return
	}
	groups := parts[0] == "apis" && len(parts) <= 2 // kube-apiserver answers every method there
	if r.Method != http.MethodGet && !groups {
		fail(w, wire.NotAllowed())
		return
	}
	if len(parts) == 1 && parts[0] != "version" && !s.options.NoAggregatedDiscovery && wire.WantsAggregated(req.Header.Get("Accept")) {
		s.serveAggregated(w, req, parts[0])
		return
	}
	m, err := wire.Negotiate(req.Header.Get("Accept"), false, false)
	if err == nil {
		err = m.CheckListKind(false)
	}
	if err != nil {
		fail(w, err)
		return
	}
	body, err := json.Marshal(doc)
	if err != nil {
		fail(w, fmt.Errorf("testserver: encode a document: %w", err))
		return
	}
	wire.WriteJSON(w, http.StatusOK, body)
}

func versionDocument() any {
	major, rest, _ := strings.Cut(strings.TrimPrefix(gitVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return version.Info{
		Major: major, Minor: minor, GitVersion: gitVersion, GoVersion: runtime.Version(),
		Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// discovery returns the document of a path, or nil if it is not served.
func (s *Server) discovery(parts []string) any {
	all := s.store.Definitions()
	group, served := "", ""
	switch {
	case len(parts) == 1 && parts[0] == "api":
		return metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: pipe.Host}},
		}
	case len(parts) == 1:
		return registry.GroupList(all)
	case len(parts) == 2 && parts[0] == "api":
		served = parts[1]
	case len(parts) == 2 && slices.Contains(registry.Groups(all), parts[1]):
		return registry.Group(all, parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		group, served = parts[1], parts[2]
	default:
		return nil
	}
	if list, ok := registry.ResourceList(all, group, served); ok {
		return list
	}
	return nil
}
