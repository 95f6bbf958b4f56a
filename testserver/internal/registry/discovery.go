package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Groups returns the groups of resources except the core group: the built-in ones in the order of their definition,
// then those of custom resources in the order of the names of their APIServices, which begin with a version.
func Groups(all []*Definition) []string {
	var out, services []string
	for _, d := range all {
		switch g := d.Group; {
		case d.Custom:
			for _, v := range d.served() {
				services = append(services, v+"."+g)
			}
		case g != "" && !slices.Contains(out, g):
			out = append(out, g)
		}
	}
	slices.Sort(services)
	for _, s := range services {
		if _, g, _ := strings.Cut(s, "."); g != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// RemoteGroup has versions of a group that another server serves. The group may also have resources of this server.
// kube-apiserver orders groups and versions by the priorities of their APIServices; here, remote ones come last.
type RemoteGroup struct {
	Name     string
	Versions []string
}

// names returns the groups of resources except the core group, and then the remote ones.
func names(all []*Definition, remote []RemoteGroup) []string {
	out := Groups(all)
	for _, r := range remote {
		if !slices.Contains(out, r.Name) {
			out = append(out, r.Name)
		}
	}
	return out
}

// remoteVersions returns the versions of a group that only another server serves.
func remoteVersions(all []*Definition, remote []RemoteGroup, group string) []string {
	own := VersionsOf(all, group)
	for _, r := range remote {
		if r.Name == group {
			return slices.DeleteFunc(slices.Clone(r.Versions), func(v string) bool { return slices.Contains(own, v) })
		}
	}
	return nil
}

// GroupList returns the document of all groups except the core group.
func GroupList(all []*Definition, remote []RemoteGroup) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range names(all, remote) {
		g, _ := Group(all, remote, name)
		g.TypeMeta = metav1.TypeMeta{}
		list.Groups = append(list.Groups, g)
	}
	return list
}

// Group returns the document of one group; ok is false if no version of it is served.
func Group(all []*Definition, remote []RemoteGroup, name string) (g metav1.APIGroup, ok bool) {
	g = metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, v := range append(VersionsOf(all, name), remoteVersions(all, remote, name)...) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	if len(g.Versions) == 0 {
		return g, false
	}
	g.PreferredVersion = g.Versions[0]
	return g, true
}

// VersionsOf returns the versions in which any resource of a group is served.
func VersionsOf(all []*Definition, group string) []string {
	var out []string
	for _, d := range all {
		if d.Group != group {
			continue
		}
		for _, v := range d.served() {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// ResourceList returns the document of one version of a group; ok is false if it is not served.
func ResourceList(all []*Definition, group, served string) (list metav1.APIResourceList, ok bool) {
	list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
	for _, d := range all {
		if d.Group == group && d.Serves(served) {
			list.GroupVersion = d.In(served).GroupVersion().String()
			list.APIResources = append(list.APIResources, d.discovered(served)...)
		}
	}
	return list, list.GroupVersion != ""
}

// discovered returns the entries of a resource and its subresources.
func (d *Definition) discovered(served string) []metav1.APIResource {
	out := []metav1.APIResource{{
		Name: d.Plural, SingularName: d.SingularName(), Namespaced: d.Namespaced, Kind: d.Kind,
		Verbs:              d.verbs(),
		ShortNames:         d.ShortNames,
		Categories:         d.Categories,
		StorageVersionHash: d.storageHash(),
	}}
	subresources := slices.Clone(d.SubresourcesIn(served)) // other requests read the same definition
	if !d.FromCRD {                                        // in the order of the paths
		slices.SortFunc(subresources, func(a, b Subresource) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, sub := range subresources {
		out = append(out, metav1.APIResource{
			Name: d.Plural + "/" + sub.Name, Namespaced: d.Namespaced, Kind: cmp.Or(sub.Kind, d.Kind),
			Group: sub.Group, Version: sub.Version, Verbs: sub.Verbs,
		})
	}
	return out
}

// storageHash returns the hash of the group, version and kind in which objects are stored in etcd.
func (d *Definition) storageHash() string {
	group, stored := d.Group, d.Stored()
	switch {
	case d.Virtual():
		return "" // nothing is stored
	case d.Alias.Resource != "":
		group = d.Alias.Group
	case d.IsCRD():
		stored = "v1beta1" // kube-apiserver has kept it although it does not serve it any more
	}
	hash := sha256.Sum256([]byte(group + "/" + stored + "/" + d.Kind))
	return base64.StdEncoding.EncodeToString(hash[:8])
}

// verbs returns the verbs of a resource.
func (d *Definition) verbs() metav1.Verbs {
	switch {
	case d.Verbs != nil:
		return d.Verbs
	case d.IsNamespace(): // namespaces are deleted one by one
		return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	case d.FromCRD: // in the order of kube-apiserver
		return metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	default:
		return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
}

// Virtual reports whether the resource has no stored objects: it is an action, or the server computes it.
func (d *Definition) Virtual() bool { return !slices.Contains(d.verbs(), "watch") }
