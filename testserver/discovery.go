package testserver

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/leatproject/leat/testserver/internal/pipe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

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
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	var doc any
	switch parts[0] {
	case "healthz", "livez", "readyz":
		if len(parts) > 2 || len(parts) == 2 && parts[1] != "ping" {
			break
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok")) // an error means that the client has gone
		return
	case "version":
		doc = s.versionDocument()
	case "api", "apis":
		doc = s.discovery(parts)
	}
	if doc == nil || len(parts) > 1 && parts[0] == "version" {
		s.notFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, notAllowed())
		return
	}
	if len(parts) == 1 && parts[0] != "version" && s.wantsAggregated(r.Accept) {
		s.serveAggregated(w, req, parts[0])
		return
	}
	m, err := s.negotiate(r.Accept, false)
	if err == nil {
		err = m.checkListKind(false)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	body, err := json.Marshal(doc)
	if err != nil {
		s.fail(w, fmt.Errorf("testserver: encode a document: %w", err))
		return
	}
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) versionDocument() any {
	major, rest, _ := strings.Cut(strings.TrimPrefix(s.options.GitVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return version.Info{
		Major: major, Minor: minor, GitVersion: s.options.GitVersion, GoVersion: runtime.Version(),
		Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func (s *Server) discovery(parts []string) any {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	switch {
	case len(parts) == 1 && parts[0] == "api":
		return metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: pipe.Host}},
		}
	case len(parts) == 1:
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range s.store.groups() {
			list.Groups = append(list.Groups, s.store.group(name))
		}
		return list
	case len(parts) == 2 && parts[0] == "api":
		return s.store.resources("", parts[1])
	case len(parts) == 2 && slices.Contains(s.store.groups(), parts[1]):
		group := s.store.group(parts[1])
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return group
	case len(parts) == 3 && parts[0] == "apis":
		return s.store.resources(parts[1], parts[2])
	}
	return nil
}

// groups returns the served groups except the core group, in the order of their definition.
func (s *store) groups() []string {
	var out []string
	for _, c := range s.order {
		if g := c.def.Group; g != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// serves reports whether any resource of a group is served.
func (s *store) serves(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.groups(), group)
}

func (s *store) group(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, c := range s.order {
		if c.def.Group != name {
			continue
		}
		for _, v := range c.def.served() {
			entry := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v}
			if !slices.Contains(g.Versions, entry) {
				g.Versions = append(g.Versions, entry)
			}
		}
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// resources returns the document of one version of a group, or nil if it is not served.
func (s *store) resources(group, served string) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, c := range s.order {
		if c.def.Group == group && c.def.serves(served) {
			list.GroupVersion = c.def.in(served).GroupVersion().String()
			list.APIResources = append(list.APIResources, c.def.discovered(served)...)
		}
	}
	if list.GroupVersion == "" {
		return nil
	}
	return list
}

// discovered returns the entries of a resource and its subresources.
func (d *definition) discovered(served string) []metav1.APIResource {
	hash := fnv.New64a()
	hash.Write([]byte(d.in(served).GroupVersionKind().String()))
	out := []metav1.APIResource{{
		Name: d.Plural, SingularName: d.singular(), Namespaced: d.Namespaced, Kind: d.Kind,
		Verbs:              metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		ShortNames:         d.ShortNames,
		Categories:         d.Categories,
		StorageVersionHash: fmt.Sprintf("%x", hash.Sum(nil)),
	}}
	for _, sub := range d.subresources() {
		out = append(out, metav1.APIResource{
			Name: d.Plural + "/" + sub.name, Namespaced: d.Namespaced, Kind: orDefault(sub.kind, d.Kind),
			Group: sub.group, Version: sub.version, Verbs: sub.verbs,
		})
	}
	return out
}
