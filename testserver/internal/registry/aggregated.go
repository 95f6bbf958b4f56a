package registry

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/object"
)

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
		Metadata object.Tree        `json:"metadata"`
		Versions []versionDiscovery `json:"versions"`
	}
	versionDiscovery struct {
		Version   string              `json:"version"`
		Resources []resourceDiscovery `json:"resources,omitempty"`
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

// AggregatedList returns the document below a root: "api" for the core group, "apis" for the others.
// Nothing is known of the resources of remote groups.
func AggregatedList(all []*Definition, remote []RemoteGroup, root string) any {
	list := groupDiscoveryList{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2", Items: []groupDiscovery{}}
	if root == "api" {
		list.Items = append(list.Items, aggregatedGroup(all, "", []string{"v1"}))
		return list
	}
	for _, name := range names(all, remote) {
		g := aggregatedGroup(all, name, VersionsOf(all, name))
		for _, v := range remoteVersions(all, remote, name) {
			g.Versions = append(g.Versions, versionDiscovery{Version: v, Freshness: "Stale"})
		}
		list.Items = append(list.Items, g)
	}
	return list
}

// aggregatedGroup returns the entry of one group.
func aggregatedGroup(all []*Definition, group string, versions []string) groupDiscovery {
	out := groupDiscovery{Metadata: object.Tree{}}
	if group != "" {
		out.Metadata["name"] = group
	}
	for _, served := range versions {
		v := versionDiscovery{Version: served, Resources: []resourceDiscovery{}, Freshness: "Current"}
		for _, d := range all {
			if d.Group == group && d.Serves(served) {
				v.Resources = append(v.Resources, d.aggregatedResource(served))
			}
		}
		out.Versions = append(out.Versions, v)
	}
	return out
}

// aggregatedResource returns the entry of a resource. As in kube-apiserver, only custom resources have group and
// version in their own kind.
func (d *Definition) aggregatedResource(served string) resourceDiscovery {
	all := d.discovered(served)
	own := metav1.GroupVersionKind{Kind: d.Kind}
	if d.Custom {
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
