package registry

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Groups returns the groups of resources except the core group, in the order of their definition.
func Groups(all []*Definition) []string {
	var out []string
	for _, d := range all {
		if g := d.Group; g != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// GroupList returns the document of all groups except the core group.
func GroupList(all []*Definition) metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range Groups(all) {
		g := Group(all, name)
		g.TypeMeta = metav1.TypeMeta{}
		list.Groups = append(list.Groups, g)
	}
	return list
}

// Group returns the document of one group, which has resources.
func Group(all []*Definition, name string) metav1.APIGroup {
	g := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, v := range versionsOf(all, name) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// versionsOf returns the versions in which any resource of a group is served.
func versionsOf(all []*Definition, group string) []string {
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
	hash := fnv.New64a()
	hash.Write([]byte(d.In(served).GroupVersionKind().String()))
	verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if d.IsNamespace() {
		verbs = slices.Delete(verbs, 2, 3) // namespaces are deleted one by one
	}
	out := []metav1.APIResource{{
		Name: d.Plural, SingularName: d.SingularName(), Namespaced: d.Namespaced, Kind: d.Kind,
		Verbs:              verbs,
		ShortNames:         d.ShortNames,
		Categories:         d.Categories,
		StorageVersionHash: fmt.Sprintf("%x", hash.Sum(nil)),
	}}
	for _, sub := range d.Subresources() {
		out = append(out, metav1.APIResource{
			Name: d.Plural + "/" + sub.Name, Namespaced: d.Namespaced, Kind: cmp.Or(sub.kind, d.Kind),
			Group: sub.group, Version: sub.version, Verbs: sub.verbs,
		})
	}
	return out
}
