package testserver

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedType is the media type of aggregated discovery. Kubernetes 1.35 removed v2beta1.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// The documents of aggregated discovery (KEP-3352). One document contains all groups, versions and resources below /api
// or /apis.
type (
	groupDiscoveryList struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Metadata   struct{}         `json:"metadata"`
		Items      []groupDiscovery `json:"items"`
	}
	groupDiscovery struct {
		Metadata object             `json:"metadata"`
		Versions []versionDiscovery `json:"versions"`
	}
	versionDiscovery struct {
		Version   string              `json:"version"`
		Resources []resourceDiscovery `json:"resources"`
		Freshness string              `json:"freshness"`
	}
	resourceDiscovery struct {
		Resource     string                  `json:"resource"`
		ResponseKind metav1.GroupVersionKind `json:"responseKind"`
		Scope        string                  `json:"scope"`
		Singular     string                  `json:"singularResource"`
		Verbs        []string                `json:"verbs"`
		ShortNames   []string                `json:"shortNames,omitempty"`
		Categories   []string                `json:"categories,omitempty"`
		Subresources []subresourceDiscovery  `json:"subresources,omitempty"`
	}
	subresourceDiscovery struct {
		Subresource  string                  `json:"subresource"`
		ResponseKind metav1.GroupVersionKind `json:"responseKind"`
		Verbs        []string                `json:"verbs"`
	}
)

// wantsAggregated reports whether aggregated discovery is the first clause of an Accept header that the server
// supports.
func (s *Server) wantsAggregated(header string) bool {
	if s.options.NoAggregatedDiscovery {
		return false
	}
	for _, c := range parseAccept(header) {
		if c.kind != "application/json" && c.kind != "application/*" && c.kind != "*/*" {
			continue
		}
		as, g, v := c.params["as"], c.params["g"], c.params["v"]
		if as == "APIGroupDiscoveryList" && g == "apidiscovery.k8s.io" && v == "v2" {
			return true
		}
		if as == "" {
			return false
		}
	}
	return false
}

// serveAggregated answers /api or /apis with the whole document, or with 304 if the client already has it.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request, root string) {
	list := groupDiscoveryList{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2", Items: []groupDiscovery{}}
	s.store.mu.Lock()
	if root == "api" {
		list.Items = append(list.Items, s.store.aggregatedGroup("", []string{"v1"}))
	} else {
		for _, name := range s.store.groups() {
			var versions []string
			for _, v := range s.store.group(name).Versions {
				versions = append(versions, v.Version)
			}
			list.Items = append(list.Items, s.store.aggregatedGroup(name, versions))
		}
	}
	s.store.mu.Unlock()
	body, err := json.Marshal(list)
	if err != nil {
		s.fail(w, fmt.Errorf("testserver: encode a discovery document: %w", err))
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
	w.Header().Set("Content-Type", aggregatedType)
	_, _ = w.Write(append(body, '\n')) // an error means that the client has gone
}

// aggregatedGroup returns the entry of one group. The caller holds the lock.
func (s *store) aggregatedGroup(group string, versions []string) groupDiscovery {
	out := groupDiscovery{Metadata: object{}}
	if group != "" {
		out.Metadata["name"] = group
	}
	for _, served := range versions {
		v := versionDiscovery{Version: served, Resources: []resourceDiscovery{}, Freshness: "Current"}
		for _, c := range s.order {
			if c.def.Group == group && c.def.serves(served) {
				v.Resources = append(v.Resources, c.def.aggregatedResource(served))
			}
		}
		out.Versions = append(out.Versions, v)
	}
	return out
}

// aggregatedResource returns the entry of a resource. As in kube-apiserver, only custom resources have group and
// version in their own kind.
func (d *definition) aggregatedResource(served string) resourceDiscovery {
	all := d.discovered(served)
	own := metav1.GroupVersionKind{Kind: d.Kind}
	if d.custom {
		own.Group, own.Version = d.Group, served
	}
	plain := all[0]
	out := resourceDiscovery{
		Resource: plain.Name, ResponseKind: own, Scope: "Cluster", Singular: plain.SingularName,
		Verbs: plain.Verbs, ShortNames: plain.ShortNames, Categories: plain.Categories,
	}
	if d.Namespaced {
		out.Scope = "Namespaced"
	}
	for _, sub := range all[1:] {
		kind := metav1.GroupVersionKind(schema.GroupVersionKind{Group: sub.Group, Version: sub.Version, Kind: sub.Kind})
		if sub.Kind == d.Kind {
			kind = own
		}
		_, name, _ := strings.Cut(sub.Name, "/")
		out.Subresources = append(out.Subresources, subresourceDiscovery{Subresource: name, ResponseKind: kind, Verbs: sub.Verbs})
	}
	return out
}
