package discovery

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// acceptAggregated requests aggregated discovery in the format of Kubernetes 1.30, or of 1.27, or the documents that
// every server has.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

const aggregatedKind = "APIGroupDiscoveryList"

// groupList is the used part of APIGroupDiscoveryList of apidiscovery.k8s.io, v2 and v2beta1 (KEP-3352).
type groupList struct {
	Items []struct {
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Freshness string
			Resources []resourceEntry
		}
	}
}

type resourceEntry struct {
	Resource         string
	ResponseKind     metav1.GroupVersionKind
	Scope            string
	SingularResource string
	Verbs            []string
	ShortNames       []string
	Categories       []string
	Subresources     []struct {
		Subresource  string
		ResponseKind metav1.GroupVersionKind
		Verbs        []string
	}
}

// group is an API group in the list of a root.
type group struct {
	name     string
	versions []*version // the preferred one first
}

// version is a version of a group. It has its resources, or err says why not. It has both if the resources are older
// than the error.
type version struct {
	schema.GroupVersion
	resources []APIResource
	err       *DocumentError
}

func (v *version) path() string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.Group + "/" + v.Version
}

// isAggregated checks the content type, and also the document, because a proxy may shorten the content type.
func isAggregated(contentType, kind string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	return kind == aggregatedKind || err == nil && params["as"] == aggregatedKind && params["g"] == "apidiscovery.k8s.io"
}

// decode decodes a document. Its kind must be wanted or empty.
func decode(path string, body []byte, wanted string, into any) error {
	var head struct{ Kind string }
	err := json.Unmarshal(body, &head)
	if err == nil && head.Kind != "" && head.Kind != wanted {
		return malformed(path, fmt.Errorf("its kind is %.64q instead of %q", head.Kind, wanted))
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return malformed(path, quote.JSON(err))
	}
	return nil
}

func malformed(path string, why error) error {
	return fmt.Errorf("get %s: %w: %w", path, ErrMalformed, why)
}

// aggregatedGroups returns the groups of an aggregated root.
func aggregatedGroups(path string, body []byte) ([]*group, error) {
	var list groupList
	if err := decode(path, body, aggregatedKind, &list); err != nil {
		return nil, err
	}
	var groups groupBuilder
	for _, g := range list.Items {
		for _, v := range g.Versions {
			to, fresh := groups.version(path, g.Metadata.Name, v.Version)
			if !fresh {
				continue
			}
			names := map[string]bool{}
			for _, r := range v.Resources {
				to.add(names, r)
			}
			if v.Freshness == "Stale" {
				to.err = &DocumentError{Path: to.path(), GroupVersion: to.GroupVersion, Err: fmt.Errorf("get %s: %w", to.path(), ErrStale)}
			}
		}
	}
	return groups.list, nil
}

// coreVersions decodes /api without aggregation. The documents of the versions must be read afterwards.
func coreVersions(path string, body []byte) ([]*group, error) {
	var list metav1.APIVersions
	if err := decode(path, body, "APIVersions", &list); err != nil {
		return nil, err
	}
	var groups groupBuilder
	for _, v := range list.Versions {
		groups.version(path, "", v)
	}
	return groups.list, nil
}

// otherGroups decodes /apis without aggregation. The documents of the versions must be read afterwards.
func otherGroups(path string, body []byte) ([]*group, error) {
	var list metav1.APIGroupList
	if err := decode(path, body, "APIGroupList", &list); err != nil {
		return nil, err
	}
	var groups groupBuilder
	for _, g := range list.Groups {
		if g.PreferredVersion.Version != "" {
			groups.version(path, g.Name, g.PreferredVersion.Version)
		}
		for _, v := range g.Versions {
			groups.version(path, g.Name, v.Version)
		}
	}
	return groups.list, nil
}

// read decodes the document of a version.
func (v *version) read(body []byte) error {
	var list metav1.APIResourceList
	if err := decode(v.path(), body, "APIResourceList", &list); err != nil {
		return err
	}
	if list.GroupVersion != "" && list.GroupVersion != v.String() {
		return malformed(v.path(), fmt.Errorf("it describes %.64q", list.GroupVersion))
	}
	subresources := map[string][]metav1.APIResource{}
	for _, r := range list.APIResources {
		if parent, name, ok := strings.Cut(r.Name, "/"); ok {
			r.Name = name
			subresources[parent] = append(subresources[parent], r)
		}
	}
	names := map[string]bool{}
	for _, r := range list.APIResources {
		e := resourceEntry{
			Resource: r.Name, ResponseKind: metav1.GroupVersionKind{Kind: r.Kind}, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Namespaced {
			e.Scope = "Namespaced"
		}
		v.add(names, e, subresources[r.Name]...)
	}
	return nil
}

// add adds a resource, unless its name is invalid or known. A resource without a kind exists only because of its
// subresources and is not added. Invalid short names and categories are dropped.
func (v *version) add(names map[string]bool, e resourceEntry, subresources ...metav1.APIResource) {
	if names[e.Resource] || !isSegment(e.Resource) || !isSegment(e.ResponseKind.Kind) {
		return
	}
	names[e.Resource] = true
	if !isSegment(e.SingularResource) {
		e.SingularResource = ""
	}
	r := APIResource{
		Resource: api.Resource{
			Group: v.Group, Version: v.Version, Kind: e.ResponseKind.Kind, Plural: e.Resource, Namespaced: e.Scope == "Namespaced",
		},
		Singular: e.SingularResource, ShortNames: segments(e.ShortNames), Categories: segments(e.Categories), Verbs: segments(e.Verbs),
	}
	for _, s := range e.Subresources {
		r.addSubresource(s.Subresource, schema.GroupVersionKind(s.ResponseKind), s.Verbs)
	}
	for _, s := range subresources {
		r.addSubresource(s.Name, schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}, s.Verbs)
	}
	v.resources = append(v.resources, r)
}

// addSubresource adds a subresource, unless its name is invalid. The default of its group and version are those of the
// resource.
func (r *APIResource) addSubresource(name string, kind schema.GroupVersionKind, verbs []string) {
	if !isSegment(name) || kind.Kind != "" && !isSegment(kind.Kind) {
		return
	}
	if kind.Kind != "" && kind.Group == "" && kind.Version == "" {
		kind.Group, kind.Version = r.Group, r.Version
	}
	r.Subresources = append(r.Subresources, Subresource{
		Name: name, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Verbs: segments(verbs),
	})
}

// groupBuilder collects groups and versions in order, each once. The zero value is ready.
type groupBuilder struct {
	list     []*group
	groups   map[string]*group
	versions map[schema.GroupVersion]*version
}

// version returns a version of a group in a root. fresh is false if the version is known or invalid.
func (b *groupBuilder) version(root, name, v string) (to *version, fresh bool) {
	if (name == "") != (root == "/api") || name != "" && !isSegment(name) || !isSegment(v) {
		return nil, false
	}
	gv := schema.GroupVersion{Group: name, Version: v}
	if to = b.versions[gv]; to != nil {
		return to, false
	}
	if b.groups == nil {
		b.groups, b.versions = map[string]*group{}, map[schema.GroupVersion]*version{}
	}
	g := b.groups[name]
	if g == nil {
		g = &group{name: name}
		b.groups[name], b.list = g, append(b.list, g)
	}
	to = &version{GroupVersion: gv}
	b.versions[gv], g.versions = to, append(g.versions, to)
	return to, true
}

// segments returns the names that are valid segments.
func segments(names []string) []string {
	return slices.DeleteFunc(names, func(s string) bool { return !isSegment(s) })
}

// maxSegment is the largest length of a name in bytes. The longest names are those of groups, which are DNS subdomains.
const maxSegment = 253

// isSegment reports whether s is safe in a path and on a terminal. It accepts the names that Kubernetes allows.
func isSegment(s string) bool {
	if s == "" || len(s) > maxSegment || s[0] == '.' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == ""
}
